package mcp

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

func TestRecordFile(t *testing.T) {
	r := records{t.TempDir()}
	s := Server{Command: "x"}
	a := ToolInfo{Name: "a", Description: "one\ntwo", Schema: json.RawMessage("{ \"type\" :  \"object\" }")}
	b := ToolInfo{Name: "b"}
	if _, err := r.update(t.Context(), s.Hash(), func(rec *record) { rec.learn(s.Hash(), []ToolInfo{a, b}) }); err != nil {
		t.Fatal(err)
	}
	a.Description = "another"
	want, err := r.update(t.Context(), s.Hash(), func(rec *record) { rec.learn(s.Hash(), []ToolInfo{b, a}) })
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.load(s.Hash())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("load = %+v, %v; want %+v", got, err, want)
	}
	if tool := got.Tools[0].tool(); tool.Description != "one\ntwo" || string(tool.Schema) != "{ \"type\" :  \"object\" }" || len(got.Changed) != 1 {
		t.Errorf("tool %+v, changed %+v", tool, got.Changed)
	}
	if info, err := os.Stat(r.path(s.Hash())); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file: %v, %v", info, err)
	}
	data, err := os.ReadFile(r.path(s.Hash()))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut": string(data[:len(data)-1]), "longer": string(data) + "x", "newer": "agent-mcp/9 known=1 resources=0 tools=0\n{}", "no JSON": "x"} {
		if err := os.WriteFile(r.path(s.Hash()), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if rec, err := r.load(s.Hash()); err == nil || len(rec.Tools) > 0 || !rec.Time.IsZero() {
			t.Errorf("%s: %+v, %v", name, rec, err)
		}
	}
	if err := r.remove(s.Hash()); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.load(s.Hash()); err != nil || !rec.Time.IsZero() {
		t.Errorf("after remove: %+v, %v", rec, err)
	}
}

func FuzzRecord(f *testing.F) {
	rec := &record{Version: recordVersion, Pins: map[string]string{}}
	rec.learn("s", []ToolInfo{{Name: "a", Description: "one", Schema: json.RawMessage(oddSchema)}})
	f.Add(string(rec.marshal()))
	f.Add("agent-mcp/1 known=1 resources=0 tools=1\n-1 9223372036854775807 1 1 a\n{}")
	f.Fuzz(func(_ *testing.T, data string) { _ = (&record{}).unmarshal(data) })
}
