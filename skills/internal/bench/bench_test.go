package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// minimum are the targets, by kind of pool. Of the skills of other suites some
// would do as well, but count as wrong.
var minimum = map[string]struct{ precision, recall, cross, shortlist float64 }{
	poolOwn:     {0.95, 0.3, 0.01, 0.95},
	poolBundled: {0.95, 0.3, 0.015, 0.95},
	poolAll:     {0.94, 0.2, 0.03, 0.9},
}

// TestTargets checks the matching against its targets on the copy of the data
// set. Results for more suites are in docs/skills.md.
func TestTargets(t *testing.T) {
	t.Parallel()
	d, err := load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range d.labelled() {
		for _, pool := range pools {
			t.Run(suite+"/"+pool, func(t *testing.T) {
				t.Parallel()
				var wrong strings.Builder
				r := d.score(suite, pool, &wrong)
				r.print(t.Output())
				want := minimum[pool]
				if r.Precision.Value < want.precision || r.Precision.Of < 20 {
					t.Errorf("precision %.3f of %d activations, want %.2f of at least 20\n%s", r.Precision.Value, r.Precision.Of, want.precision, wrong.String())
				}
				if r.Recall.Value < want.recall || r.Shortlist.Value < want.shortlist {
					t.Errorf("recall %.3f, shortlist@12 %.3f, want %.2f and %.2f", r.Recall.Value, r.Shortlist.Value, want.recall, want.shortlist)
				}
				if r.Cross.Value > want.cross {
					t.Errorf("%.3f of unrelated queries activate something, want at most %.3f\n%s", r.Cross.Value, want.cross, wrong.String())
				}
			})
		}
	}
}

// TestEveryday matches inputs of everyday life, and inputs about software that use
// their words, against skills that only have a description: few are activated, and
// those must be right.
func TestEveryday(t *testing.T) {
	t.Parallel()
	d, err := load(os.DirFS("testdata/everyday"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		var wrong strings.Builder
		r := d.score("everyday", pool, &wrong)
		if r.Queries != 180 || r.Precision.Of == 0 || r.Precision.Value < 0.95 || r.Cross.Value > 0.05 {
			t.Errorf("%s: precision %.3f of %d activations, %.3f of the unrelated inputs activate something\n%s", pool, r.Precision.Value, r.Precision.Of, r.Cross.Value, wrong.String())
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
	if err := json.Unmarshal(out.Bytes(), &reports); err != nil || len(reports) != len(pools) || reports[0].Suite != "dotnet" || reports[0].Near.Of == 0 {
		t.Errorf("reports = %+v, error %v", reports, err)
	}
	if err := run([]string{"-data", "testdata", "nope"}, &out); err == nil || !strings.Contains(err.Error(), `no suite "nope"`) {
		t.Errorf("error of an unknown suite = %v", err)
	}
}
