package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// approver stands for your user: it is asked about each call that no rule allows.
type approver struct{}

func (approver) Ask(_ context.Context, q core.Question) (core.Answer, error) {
	fmt.Println("asked:", q.Tool)
	if q.Tool == "write_file" {
		return core.Answer{Choice: core.ChoiceOnce}, nil
	}
	return core.Answer{Choice: core.ChoiceDeny, Reason: "only files, please"}, nil
}

// The host decides on calls that need approval.
func ExampleSessionOptions_asker() {
	dir, err := os.MkdirTemp("", "asker")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	a, err := agent.Open(ctx, agent.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Asker: approver{}, Provider: scriptedModel(`
  - {when: {user: Write}, calls: [{name: write_file, args: {file_path: a.txt, content: hello}}]}
  - {when: {tool: write_file}, text: Written.}
`)})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	out, err := s.Submit(ctx, core.TextInput("Write a.txt"))
	text, _ := os.ReadFile(dir + "/a.txt") // empty where it was denied
	fmt.Println(out.Text, string(text), err)
	// Output:
	// asked: write_file
	// Written. hello <nil>
}

// shouting is a model that repeats the last words of the user, loudly.
type shouting struct{}

func (shouting) Info() model.ProviderInfo { return model.ProviderInfo{Name: "shouting", Model: "v1"} }

func (shouting) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		last := req.Messages[len(req.Messages)-1].Parts.Text()
		_ = yield(model.Delta{Kind: model.DeltaText, Text: strings.ToUpper(last)}, nil) &&
			yield(model.Delta{Kind: model.DeltaDone, Stop: model.StopEnd}, nil)
	}
}

// A provider is two methods; modeltest has a suite that checks one.
func ExampleSessionOptions_provider() {
	ctx := context.Background()
	a, err := agent.Open(ctx, agent.Options{Dir: "."})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: shouting{}})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	out, err := s.Submit(ctx, core.TextInput("good day"))
	fmt.Println(out.Text, err)
	// Output: GOOD DAY <nil>
}

// stream answers a request with the events of a session, as server-sent events.
func stream(a *agent.Agent, provider model.Provider) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		prompt, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s, err := a.NewSession(r.Context(), agent.SessionOptions{Provider: provider})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		go func() { // it ends with the request, whose context it has
			defer s.Close()
			_, _ = s.Submit(r.Context(), core.TextInput(string(prompt))) // its end is an event
		}()
		w.Header().Set("Content-Type", "text/event-stream")
		for e, err := range s.Events(r.Context(), 0) {
			if err != nil {
				return // the client is gone
			}
			line, err := json.Marshal(e)
			if err != nil {
				return
			}
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.Seq, line)
			w.(http.Flusher).Flush()
		}
	}
}

// A session streamed over HTTP, as it happens.
func Example_http() {
	a, err := agent.Open(context.Background(), agent.Options{Dir: "."})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	server := httptest.NewServer(stream(a, coretest.Model(coretest.Say("Good day!"))))
	defer server.Close()

	res, err := http.Post(server.URL, "text/plain", strings.NewReader("Hello!"))
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e event.Event
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		switch b := e.Body.(type) {
		case event.Message:
			fmt.Println(b.Content.Text())
		case event.SessionEnd:
			fmt.Println("ended:", b.Reason)
		}
	}
	// Output:
	// Good day!
	// ended: closed
}

// Sessions work with a plugin for Claude Code. Use Name for one that is installed with
// agent plugins add.
func ExampleOptions_bundles() {
	dir, err := os.MkdirTemp("", "bundles")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	plugin := filepath.Join(dir, "letters")
	if err := os.MkdirAll(filepath.Join(plugin, "skills", "reply"), 0o755); err != nil {
		panic(err)
	}
	skill := "---\nname: reply\ndescription: How we answer letters.\n---\nBegin with a greeting.\n"
	if err := os.WriteFile(filepath.Join(plugin, "skills", "reply", "SKILL.md"), []byte(skill), 0o644); err != nil {
		panic(err)
	}
	ctx := context.Background()
	a, err := agent.Open(ctx, agent.Options{Dir: dir, Home: filepath.Join(dir, "home"), Bundles: []agent.Bundle{{Dir: plugin}}})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: scriptedModel(`
  - {when: {user: Answer}, calls: [{name: skill, args: {action: load, name: "letters:reply"}}]}
  - {when: {tool: skill}, text: Hello!}
`)})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	out, err := s.Submit(ctx, core.TextInput("Answer the letter"))
	fmt.Println(out.Text, err)
	for _, m := range s.Messages() {
		for _, p := range m.Parts {
			if r, ok := p.(model.ToolResult); ok {
				fmt.Println(strings.Contains(model.Parts(r.Content).Text(), "Begin with a greeting."))
			}
		}
	}
	// Output:
	// Hello! <nil>
	// true
}
