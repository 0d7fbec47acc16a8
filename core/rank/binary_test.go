package rank_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/seed-009c0928/agent/core/rank"
)

func written(t testing.TB, docs int) []byte {
	x := rank.New(rank.Field{Name: "name", Weight: 3}, rank.Field{Name: "text", Weight: 1})
	for i := range docs {
		x.Put(fmt.Sprintf("id-%d", i), fmt.Sprintf("tool %d", i), fmt.Sprintf("Opens issue %d, sorts labels and merges %d requests.", i, i%7))
	}
	data, err := x.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := rank.Load(data, rank.Field{Name: "name", Weight: 3}, rank.Field{Name: "text", Weight: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"merging issues 3", "tool 5 requests", "nothing", "sort"} {
		if got, want := loaded.Search(query, 9), x.Search(query, 9); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
	return data
}

func TestLoad(t *testing.T) {
	t.Parallel()
	written(t, 0)
	data := written(t, 50)
	if _, err := rank.Load(data, rank.Field{Name: "name", Weight: 1}); err == nil {
		t.Error("loaded with other fields")
	}
	for n := range len(data) {
		if _, err := rank.Load(data[:n], rank.Field{Weight: 1}, rank.Field{Weight: 1}); err == nil {
			t.Fatalf("loaded %d of %d bytes", n, len(data))
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(written(f, 3), "issue 2")
	f.Fuzz(func(_ *testing.T, data []byte, query string) {
		if x, err := rank.Load(data, rank.Field{Weight: 1}, rank.Field{Weight: 1}); err == nil {
			x.Search(query, 3)
		}
	})
}
