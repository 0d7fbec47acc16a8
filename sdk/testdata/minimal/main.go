// Command minimal is the smallest plugin, for measuring its size and start time.
package main

import "github.com/seed-009c0928/agent/sdk"

type args struct {
	Text string `json:"text"`
}

func main() {
	sdk.Serve(sdk.Plugin{Name: "minimal", Version: "1.0.0"},
		sdk.Tool("echo", "Say it again.", func(_ *sdk.Context, in args) (string, error) { return in.Text, nil }))
}
