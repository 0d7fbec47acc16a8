package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// TestOffers finds keys, servers and programs that are signed in.
func TestOffers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs here are shell scripts")
	}
	home, bin := t.TempDir(), t.TempDir()
	for name, script := range map[string]string{
		"gh":     "echo gho_token",
		"az":     "echo '{\"accessToken\": \"eyJ\"}'",
		"gcloud": "case $1 in auth) echo ya29;; config) echo a-project;; esac",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, file := range []string{".azure/azureProfile.json", ".config/gcloud/application_default_credentials.json"} {
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"AGENT_HOME": filepath.Join(home, ".agent"), "HOME": home, "PATH": os.Getenv("PATH"), "ANTHROPIC_API_KEY": "a", "HF_TOKEN": "b", "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}
	draft, err := NewDraft(&cmdutil.IO{Env: func(name string) string { return env[name] }, Cwd: home})
	if err != nil {
		t.Fatal(err)
	}
	chat := modeltest.NewChat()
	chat.Models = []string{"m1", "nomic-embed-text"}
	server := KnownServer{"Here", chat.Serve(t)}
	var got []string
	for _, o := range draft.Offers(t.Context(), []KnownServer{server}) {
		line := o.Name + ": " + o.Found
		for _, key := range o.Missing {
			line += ", without " + key
		}
		got = append(got, line)
		try := *draft
		if err := try.Take(o.Answers...); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	model := func(provider string) string { return draft.Settings.ModelKey(provider) }
	if model("azure") != "providers.azure.deployment" {
		t.Errorf("the model of azure is %s", model("azure"))
	}
	p := draft.Settings.Providers
	want := []string{
		"anthropic/" + p.Anthropic.Model + ": ANTHROPIC_API_KEY is set", "huggingface/openai/gpt-oss-120b: HF_TOKEN is set",
		"local/m1: at " + server.URL, "github/" + p.GitHub.Model + ": gh is signed in",
		"azure: az is signed in, without providers.azure.deployment", "gemini/" + p.Gemini.Model + ": gcloud is signed in",
	}
	if !slices.Equal(got, want) {
		t.Errorf("offers\n%q\nwant\n%q", got, want)
	}
	if draft.Chosen() {
		t.Error("nothing was chosen")
	}
	if err := draft.Take(Answer("providers.default", "local")); err != nil || !draft.Chosen() {
		t.Errorf("local was chosen: %v", err)
	}
}

// TestFound: what was found of a provider is marked, and offered first.
func TestFound(t *testing.T) {
	chat := modeltest.NewChat()
	url, home := chat.Serve(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{"providers":{"vllm":{"baseUrl":"`+url+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"AGENT_HOME": home, "ZAI_API_KEY": "a"}
	draft, err := NewDraft(&cmdutil.IO{Env: func(name string) string { return env[name] }, Cwd: home})
	if err != nil {
		t.Fatal(err)
	}
	servers := FindLocalServers(t.Context(), []KnownServer{{"vLLM", url}})
	var got []string
	for _, k := range draft.ProviderKinds() {
		if found := draft.Found(k, servers); found != "" {
			got = append(got, k.Name+": "+found)
		}
	}
	if want := []string{"zai: ZAI_API_KEY is set", "vllm: is running"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := draft.Preferred(servers); got != "zai" {
		t.Errorf("%s is offered first", got)
	}
}
