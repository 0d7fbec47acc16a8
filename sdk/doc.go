// Package sdk is for writing plugins. A plugin is a separate program that an agent
// starts; it offers tools to the model, and optionally context for the user's
// inputs and slash commands:
//
//	type ForecastArgs struct {
//		City string `json:"city" jsonschema:"the city, in English"`
//		Days int    `json:"days,omitempty" default:"1"`
//	}
//
//	func main() {
//		sdk.Serve(sdk.Plugin{Name: "weather", Version: "1.0.0"},
//			sdk.Tool("forecast", "Forecast for a city.", func(ctx *sdk.Context, in ForecastArgs) (string, error) {
//				return "Sunny in " + in.City, nil
//			}, sdk.ReadOnly()))
//	}
//
// The schema of a tool's arguments is inferred from their type: json tags name the
// fields, fields without omitempty or a default are required, and the tags
// jsonschema (a description), enum ("a,b,c") and default describe them. Arguments
// are validated against the schema and completed with defaults before the function
// is called.
//
// A result is a string, any value that can be encoded as JSON, or a [Result] with
// images. Errors go to the model; [Errorf] gives them a code. A panic in a function
// is an error result; one in a goroutine ends the process, as always in Go, and the
// host starts it again for the next call.
//
// A plugin.json beside the binary has the plugin's name, version, command and the
// manifest of what its process may do (docs/plugins.md). "agent plugins new" creates
// a plugin from a template. Package sdk/sdktest tests a plugin without an agent.
package sdk
