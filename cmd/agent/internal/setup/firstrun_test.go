package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// serve starts a server with the models and returns where it is known to be.
func serve(t *testing.T, name string, models ...string) KnownServer {
	t.Helper()
	chat := modeltest.NewChat()
	chat.Models = models
	return KnownServer{name, chat.Serve(t)}
}

// TestFindLocalServers asks side by side: servers that list models, one that
// is something else, one that wants a key, one that never answers, and none.
func TestFindLocalServers(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	locked := modeltest.NewChat()
	locked.Key = "sk-the-key"

	full, empty := serve(t, "Full", "m1", "m2"), serve(t, "Empty")
	start := time.Now()
	servers := FindLocalServers(t.Context(), []KnownServer{
		{"Hanging", hanging.URL}, {"Web", web.URL}, full, {"Locked", locked.Serve(t)}, {"None", "http://127.0.0.1:1/v1"}, empty, {"Elsewhere", "http://192.0.2.1/v1"},
	})
	if took := time.Since(start); took > 100*probeTime { // with much to spare for a busy machine
		t.Errorf("it took %s", took)
	}
	var got []string
	for _, f := range servers {
		got = append(got, f.String())
	}
	want := []string{full.URL + " (Full?): 2 models, such as m1", empty.URL + " (Empty?): no models yet"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestLoopbackOnly(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:80": true, "127.1.2.3:80": true, "[::1]:80": true,
		"192.0.2.1:80": false, "[2001:db8::1]:80": false, "0.0.0.0:80": false, "localhost": false, "": false,
	} {
		if err := loopbackOnly("tcp", address, syscall.RawConn(nil)); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestFirstRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that no server of this machine is found
	const offers = "agent demo"
	for name, test := range map[string]struct {
		err  error
		want string // "" for no advice
	}{
		"not configured":    {&model.Error{Code: model.CodeNotConfigured}, offers},
		"refused here":      {fmt.Errorf("run: %w", &model.Error{Code: model.CodeNetwork, Permanent: true}), offers},
		"a key's variable":  {&config.Error{Key: "providers.openai.apiKey", Err: errors.New("X is not set")}, offers},
		"no such model":     {&model.Error{Code: model.CodeModelNotFound, Provider: "local"}, "agent models --provider local"},
		"refused elsewhere": {&model.Error{Code: model.CodeNetwork}, ""},
		"a wrong key":       {&model.Error{Code: model.CodeAuthentication, Provider: "openai"}, "agent providers test openai to see where its key comes from"},
		"another setting":   {&config.Error{Key: "agent.maxRounds", Err: errors.New("too small")}, ""},
		"any other":         {errors.New("disk full"), ""},
		"none":              {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := FirstRunAdvice(ctx, test.err)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || got != "" && !strings.HasSuffix(got, "\n") {
				t.Errorf("advice %q, want %q", got, test.want)
			}
		})
	}
}

func TestFirstSteps(t *testing.T) {
	none := firstSteps(nil)
	if !strings.Contains(none, "No model server found on this machine at the default ports (Ollama, LM Studio,") {
		t.Errorf("without servers:\n%s", none)
	}
	got := firstSteps([]LocalServer{
		{KnownServer{"Ollama", "http://localhost:11434/v1"}, []string{"llama3.3:latest", "b"}},
		{KnownServer{"vLLM", "http://localhost:8000/v1"}, []string{"it's odd"}},
		{KnownServer{"LM Studio", "http://localhost:1234/v1"}, nil},
	})
	for _, want := range []string{
		"http://localhost:11434/v1 (Ollama?): 2 models, such as llama3.3:latest\n",
		"agent exec --provider local --set providers.local.baseUrl=http://localhost:11434/v1 --model llama3.3:latest PROMPT\n",
		`--model 'it'\''s odd' PROMPT`,
		"http://localhost:1234/v1 (LM Studio?): no models yet\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// TestRefusedOnce checks, at the connection, that a server that does not run
// is asked once, with the retries of the settings.
func TestRefusedOnce(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + ln.Addr().String() + "/v1"
	ln.Close()
	p, err := langchain.Local(wire.Config{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	policy := model.DefaultRetry
	policy.Sleep = func(context.Context, time.Duration) error {
		t.Error("it waits for another attempt")
		return errors.New("no waiting")
	}
	_, err = model.Complete(t.Context(), model.WithRetry(p, policy), &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("hi")}}})
	if e := model.AsError(err); e == nil || e.Code != model.CodeNetwork || !e.Permanent {
		t.Errorf("error %v", err)
	}
}
