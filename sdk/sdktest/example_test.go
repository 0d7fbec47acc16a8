package sdktest_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

type shoutArgs struct {
	Text string `json:"text"`
}

// The test of a plugin: the results of its tools, and conformance.
func Example() {
	shout := sdk.Tool("shout", "Say it louder.", func(_ *sdk.Context, in shoutArgs) (string, error) {
		return strings.ToUpper(in.Text), nil
	})
	_ = func(t *testing.T) { // in a real test: func TestPlugin(t *testing.T)
		p := sdktest.Start(t, sdk.Plugin{Name: "voice", Version: "1.0.0"}, shout)
		if got := p.Call(t, "shout", shoutArgs{Text: "hey"}).Text; got != "HEY" {
			t.Errorf("shout = %q", got)
		}
		sdktest.Conforms(t, p, sdktest.Sample{Tool: "shout", Args: `{"text": "hey"}`})
	}
	// Output:
}
