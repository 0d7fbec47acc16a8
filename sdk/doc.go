// Package sdk is what a plugin's author writes with. A plugin is a program of
// its own that an agent starts; it offers tools to the model and, if it likes,
// context to what a person says and slash commands:
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
// The schema of a tool's arguments is inferred from their type: json tags name
// the fields, those without omitempty or a default are required, and the tags
// jsonschema (a description), enum ("a,b,c") and default say the rest. What
// the model sends is held against the schema and completed with the defaults
// before the function sees it.
//
// A result may be a string, anything that can be JSON, or a [Result] with
// images. Errors go to the model; [Errorf] gives them a code. A panic in a
// function is an error result; one in a goroutine ends the process, as always
// in Go, and the host starts it anew for the next call.
//
// Beside the plugin's binary stands a plugin.json with its name, its version,
// its command and the manifest of what its process may do (docs/plugins.md).
// Package sdk/sdktest tests a plugin without an agent.
package sdk
