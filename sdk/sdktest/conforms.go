package sdktest

import (
	"encoding/json"
	"testing"

	"github.com/seed-009c0928/agent/internal/plugintest"
	"github.com/seed-009c0928/agent/sdk"
)

// Sample is a call of a tool and its expected result.
type Sample struct {
	Tool   string
	Args   string   // JSON; empty = {}
	Want   sdk.Code // empty = success
	Blocks bool     // runs until it is cancelled
}

// Conforms checks what an agent expects of every plugin: that it describes itself
// the same each time, with names and schemas that models accept; that it rejects
// invalid arguments, unknown names and empty sessions without crashing; that calls
// run concurrently and end when cancelled. Every tool needs at least one sample.
func Conforms(t *testing.T, p *Plugin, samples ...Sample) {
	t.Helper()
	var list []plugintest.Sample
	for _, s := range samples {
		list = append(list, plugintest.Sample{
			Tool: s.Tool, Args: json.RawMessage(s.Args), Code: s.Want, Blocks: s.Blocks, Answers: p.Answers, Model: p.Model,
		})
	}
	p.check(t, p.driver(t), list)
}

// ConformsTo is like [Conforms], with the samples and settings in a file, samples.json:
// those with which "agent plugins test" does the same (docs/plugins.md).
func ConformsTo(t *testing.T, p *Plugin, file string) {
	t.Helper()
	list, err := plugintest.ReadSamples(file)
	if err != nil {
		t.Fatal(err)
	}
	d := p.driver(t)
	if list.Settings != nil {
		d.Settings = list.Settings
	}
	p.check(t, d, list.Samples)
}

func (p *Plugin) check(t *testing.T, d *plugintest.Driver, samples []plugintest.Sample) {
	t.Helper()
	for _, c := range plugintest.Checks(d, samples) {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
