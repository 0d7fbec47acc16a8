package sdktest_test

import (
	"os"
	"testing"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

const servesPlugin = "SDKTEST_SERVES"

func TestMain(m *testing.M) {
	if os.Getenv(servesPlugin) != "" {
		sdk.Serve(demo())
	}
	os.Exit(m.Run())
}

func demo() sdk.Plugin {
	type args struct {
		Text string `json:"text"`
	}
	return sdk.Plugin{Name: "demo", Version: "1.0.0", Extensions: []sdk.Extension{
		sdk.Tool("echo", "Say it again.", func(_ *sdk.Context, in args) (string, error) { return in.Text, nil }, sdk.ReadOnly()),
		sdk.Tool("wait", "Wait.", func(ctx *sdk.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}),
	}}
}

var samples = []sdktest.Sample{
	{Tool: "echo", Args: `{"text": "hello"}`},
	{Tool: "echo", Args: `{"text": 3}`, Want: sdk.Validation},
	{Tool: "wait", Blocks: true},
}

func TestConformsInside(t *testing.T) { sdktest.Conforms(t, sdktest.Start(t, demo()), samples...) }

func TestConformsAsAProcess(t *testing.T) {
	t.Setenv(servesPlugin, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sdktest.Conforms(t, sdktest.StartBinary(t, self), samples...)
}
