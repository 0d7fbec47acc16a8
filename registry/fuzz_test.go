package registry_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/registry"
)

// FuzzSearch registers a foreign tool, searches for it and calls it by its name.
func FuzzSearch(f *testing.F) {
	f.Add("git hub", "create issue", "Open an issue.", `{"type":"object","properties":{"n":{"type":"integer","description":"the number","enum":["a",1]}}}`, "open a ticket")
	f.Add("", "", "", "", "")
	f.Add("a__b", "c_0123abcd", "\x1b[2J\u202e", `{"properties":[]}`, "a__b__c")
	f.Add("x", strings.Repeat("long", 50), "\xff", `[[[{"enum":{}}]]]`, "\x00 long")
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, source, name, text, schema, query string) {
		if !json.Valid([]byte(schema)) {
			schema = ""
		}
		r := registry.New(registry.Options{})
		defer r.Close()
		set := newToolset(source)
		set.list = append(set.list, &tool{name: name, text: text, schema: schema})
		if r.Add(t.Context(), set) != nil {
			return // an invalid name of a toolset
		}
		search := r.NewSearch(r)
		search.SetBudget(0, false)
		table, err := search.Snapshot(t.Context())
		if err != nil {
			return // an invalid tool
		}
		found, ok := table.Lookup("tool_search")
		if !ok {
			t.Fatalf("no search in %v", table.Names())
		}
		for _, e := range table.Entries() {
			if !valid.MatchString(e.ModelName) {
				t.Errorf("%q of %q is called %q", name, source, e.ModelName)
			}
			for _, q := range []string{query, e.ModelName} {
				args, err := json.Marshal(map[string]string{"query": q})
				if err != nil {
					t.Fatal(err)
				}
				res, err := found.Tool.Run(t.Context(), &core.Call{Name: "tool_search", Args: args})
				if e.Deferred && q == e.ModelName && (err != nil || !strings.Contains(model.Parts(res.Content).Text(), q)) {
					t.Errorf("%q is not found by its name: %+v, %v", q, res, err)
				}
			}
		}
	})
}
