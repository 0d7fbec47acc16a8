package modeltest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// post sends a request over a separate connection.
func post(t *testing.T, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer key")
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (*http.Response, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return resp, string(got), err
}

func TestShapes(t *testing.T) {
	turn := modeltest.Turn{
		Text:  []string{"Two ", "calls."},
		Calls: []modeltest.Call{{ID: "call_1", Name: "a", Args: []string{"{", "}"}}, {ID: "call_2", Name: "b", Args: []string{`{"x":1}`}}},
	}
	url := modeltest.NewChat(turn, turn, turn).Serve(t)
	const messages = `"model":"m","messages":[{"role":"user","content":"hi"}]`
	for _, test := range []struct{ golden, body string }{
		{"stream.golden", `{` + messages + `,"stream":true,"stream_options":{"include_usage":true}}`},
		{"stream_without_usage.golden", `{` + messages + `,"stream":true}`},
		{"completion.golden", `{` + messages + `}`},
	} {
		resp, body, err := post(t, url, test.body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", test.golden, resp.Status, err)
		}
		goldentest.Check(t, "testdata/"+test.golden, []byte(body))
	}
}

func TestModels(t *testing.T) {
	chat := modeltest.NewChat()
	chat.Models = []string{"m-1", "m-2"}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, chat.Serve(t)+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body, err := do(t, req)
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, "testdata/"+"models.golden", []byte(body))
}

// TestRefusals sends requests that the real service rejects.
func TestRefusals(t *testing.T) {
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, test := range []struct{ name, body, want string }{
		{"no JSON", `{`, "could not parse"},
		{"no model", `{"messages":[]}`, "must provide a model"},
		{"unknown model", `{"model":"x","messages":[{"role":"user","content":"hi"}]}`, "model_not_found"},
		{"no messages", `{"model":"m","messages":[]}`, "empty array"},
		{"role", `{"model":"m","messages":[{"role":"robot","content":"hi"}]}`, "robot"},
		{"content", `{"model":"m","messages":[{"role":"user","content":7}]}`, "Invalid type"},
		{"content part", `{"model":"m","messages":[{"role":"user","content":[{"type":"binary","binary":{}}]}]}`, "binary"},
		{"image of the assistant", `{"model":"m","messages":[{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://a/b.png"}}]}]}`, "image_url"},
		{"null content", `{"model":"m","messages":[{"role":"assistant","content":null}]}`, "expected a string"},
		{"call without result", `{"model":"m","messages":[` + call + `]}`, "must be followed"},
		{"call without type", `{"model":"m","messages":[` + strings.Replace(call, `"type":"function",`, "", 1) + `]}`, "type 'function'"},
		{"result without call", `{"model":"m","messages":[{"role":"tool","tool_call_id":"c1","content":"x"}]}`, "preceeding"},
		{"user between call and result", `{"model":"m","messages":[` + call + `,{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c1","content":"x"}]}`, "must be followed"},
		{"temperature", `{"model":"o4-mini","temperature":0,"messages":[{"role":"user","content":"x"}]}`, "temperature"},
		{"max_tokens", `{"model":"o4-mini","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, "max_completion_tokens"},
		{"stream options", `{"model":"m","stream_options":{},"messages":[{"role":"user","content":"x"}]}`, "stream_options"},
		{"tool", `{"model":"m","tools":[{"type":"function","function":{"name":"a b","parameters":{}}}],"messages":[{"role":"user","content":"x"}]}`, "tools[0]"},
		{"tool choice", `{"model":"m","tool_choice":"auto","messages":[{"role":"user","content":"x"}]}`, "tool_choice"},
		{"beyond the script", `{"model":"m","messages":[` + call + `,{"role":"tool","tool_call_id":"c1","content":"x"}]}`, "no turn left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			chat := modeltest.NewChat()
			chat.Models = []string{"m", "o4-mini"}
			resp, body, err := post(t, chat.Serve(t), test.body)
			if err != nil || resp.StatusCode < 400 || !strings.Contains(body, test.want) {
				t.Errorf("%s %s %v, want a word on %q", resp.Status, body, err, test.want)
			}
			if len(chat.Requests()) != 1 || resp.Header.Get("X-Request-Id") == "" {
				t.Error("the request was not kept, or has no id")
			}
		})
	}
}

func TestKey(t *testing.T) {
	chat := modeltest.NewChat()
	chat.Key = "another"
	resp, _, err := post(t, chat.Serve(t), `{"model":"m","messages":[]}`)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s, %v; want 401", resp.Status, err)
	}
}

func TestUnknownPath(t *testing.T) {
	url := modeltest.NewChat().Serve(t)
	for path, want := range map[string]int{"/embeddings": http.StatusNotFound, "/chat/completions": http.StatusMethodNotAllowed} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, _, err := do(t, req); err != nil || resp.StatusCode != want {
			t.Errorf("%s: %s, %v; want %d", path, resp.Status, err, want)
		}
	}
}

// TestBreak checks that the three endings differ for the client.
func TestBreak(t *testing.T) {
	const body = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	for how, failed := range map[modeltest.Ending]bool{modeltest.End: false, modeltest.Abort: true, modeltest.Reset: true} {
		url := modeltest.NewChat(modeltest.Turn{Text: []string{"hello"}, Break: &modeltest.Break{After: 100, How: how}}).Serve(t)
		_, got, err := post(t, url, body)
		if (err != nil) != failed || how != modeltest.Reset && len(got) != 100 {
			t.Errorf("ending %d: %d bytes, error %v", how, len(got), err)
		}
	}
}

func TestListModels(t *testing.T) {
	chat := modeltest.NewChat()
	chat.Key, chat.Models = "sk-1", []string{"a", "b"}
	url := chat.Serve(t)
	for key, want := range map[string]struct {
		status int
		text   string
	}{"sk-1": {http.StatusOK, `"id":"b"`}, "sk-2": {http.StatusUnauthorized, "invalid_api_key"}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want.status || !strings.Contains(string(body), want.text) {
			t.Errorf("%s: %s %s, %v", key, resp.Status, body, err)
		}
	}
}
