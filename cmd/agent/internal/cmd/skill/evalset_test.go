package skill

import (
	"strings"
	"testing"
)

func TestParseCases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ data, want string }{
		{`[{"query":"a","should_trigger":true},{"query":"b","should_trigger":false}]`, "a+ b-"},
		{`{"skill_name":"x","evals":[{"id":1,"prompt":" a ","expected_output":"…"},{"prompt":"b","should_trigger":false}]}`, "a+ b-"},
		{`[{"prompt":"a","assertions":[]}]`, "a+"},
		{`{"queries":[{"query":"a"}]}`, "a+"},
		{`[]`, ""},
		{`[{"query":"a"}]`, "should_trigger is missing"},
		{`[{"query":"a","should_trigger":"yes"}]`, "should_trigger"},
		{`[{"should_trigger":true}]`, "entry 1 has neither query nor prompt"},
		{`{"name":"x"}`, "or an object with evals"},
		{`{"evals":3}`, "expected a list of {prompt}"},
		{`nope`, "expected a list of {query, should_trigger}"},
	} {
		cases, err := parseCases([]byte(tt.data))
		var got []string
		for _, c := range cases {
			got = append(got, c.Query+map[bool]string{true: "+", false: "-"}[c.Trigger])
		}
		if text := strings.Join(got, " "); err == nil && text != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.data, text, err, tt.want)
		}
	}
}

func FuzzParseCases(f *testing.F) {
	f.Add([]byte(`[{"query":"a","should_trigger":true}]`))
	f.Add([]byte(`{"evals":[{"prompt":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cases, err := parseCases(data)
		for _, c := range cases {
			if err != nil || c.Query == "" {
				t.Errorf("%+v, %v", c, err)
			}
		}
	})
}
