package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestTargets checks the matching against its targets on the copy of the data
// set. The results for the whole set are in docs/skills.md; those of the copy
// differ, as it has fewer related skills.
func TestTargets(t *testing.T) {
	t.Parallel()
	d, err := load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range d.suites() {
		var wrong strings.Builder
		r := d.score(suite, &wrong)
		r.print(t.Output())
		if r.Precision.Value < 0.95 || r.Precision.Of < 20 {
			t.Errorf("%s: precision %.3f of %d activations, want 0.95 of at least 20\n%s", suite, r.Precision.Value, r.Precision.Of, wrong.String())
		}
		if r.Cross.Value > 0.02 {
			t.Errorf("%s: %.3f of unrelated queries activate something, want at most 0.02\n%s", suite, r.Cross.Value, wrong.String())
		}
		if r.Shortlist.Value < 0.9 {
			t.Errorf("%s: shortlist@12 %.3f, want 0.9", suite, r.Shortlist.Value)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run([]string{"-data", "testdata", "-json", "dotnet"}, &out); err != nil {
		t.Fatal(err)
	}
	var reports []report
	if err := json.Unmarshal(out.Bytes(), &reports); err != nil || len(reports) != 1 || reports[0].Suite != "dotnet" || reports[0].Near.Of == 0 {
		t.Errorf("reports = %+v, error %v", reports, err)
	}
	if err := run([]string{"-data", "testdata", "nope"}, &out); err == nil || !strings.Contains(err.Error(), `no suite "nope"`) {
		t.Errorf("error of an unknown suite = %v", err)
	}
}
