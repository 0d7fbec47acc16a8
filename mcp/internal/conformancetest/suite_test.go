package conformancetest

import "testing"

func TestVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		checks []check
		passes bool
	}{
		"not run":           {nil, false},
		"nothing checked":   {[]check{{Status: "INFO"}, {Status: "SKIPPED"}, {Status: "WARNING"}}, false},
		"passed":            {[]check{{Status: "SUCCESS"}, {Status: "WARNING"}}, true},
		"one of two failed": {[]check{{Status: "SUCCESS"}, {Status: "FAILURE"}}, false},
	} {
		if err := verdict(tt.checks); (err == nil) != tt.passes {
			t.Errorf("%s: %v", name, err)
		}
	}
}
