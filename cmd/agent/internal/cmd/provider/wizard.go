package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// listTime is the time limit for an endpoint to list its models.
const listTime = 15 * time.Second

// wizard asks the questions of agent providers setup.
type wizard struct {
	*cmdutil.Prompter
	candidates []setup.KnownServer // to look for on this machine

	name    string              // of the provider; empty if it is a service without a name yet
	kind    setup.ProviderKind  // the zero value until it is chosen
	set     *setup.Draft        // with the answers so far
	servers []setup.LocalServer // found on this machine
	keyring bool                // save the key in the keyring instead of the settings
	defined bool                // the provider is new, and its endpoint was entered
	follows bool                // an interactive session follows
}

// run asks, tests and writes. If it returns an error, nothing was written.
func (w *wizard) run(ctx context.Context) error {
	var err error
	if w.set, err = setup.NewDraft(w.IO); err != nil {
		return err
	}
	if w.set.Home == "" {
		return &config.Error{Err: errors.New("no home directory for the settings: set HOME or AGENT_HOME")}
	}
	for _, step := range []func(context.Context) error{w.chooseProvider, w.chooseAccess, w.chooseEndpoint, w.enterKey, w.chooseModel, w.try} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return w.write(ctx)
}

// take keeps an answer if it is valid for its key; if not, it prints why.
func (w *wizard) take(key string, value any) bool {
	err := w.set.Take(setup.Answer(key, value))
	if err != nil {
		w.Printf("%v.", err)
	}
	return err == nil
}

// taker returns take for one key.
func (w *wizard) taker(key string) func(string) bool {
	return func(value string) bool { return w.take(key, value) }
}

// chooseProvider takes the provider that was named, or asks for the name of another
// service.
func (w *wizard) chooseProvider(ctx context.Context) error {
	w.Printf("Configure a model provider. Nothing is saved until the end.")
	if w.name != "" {
		isNew, err := w.find(w.name)
		if err == nil {
			err = w.use(ctx, w.name, isNew)
		}
		return err
	}
	for {
		name, err := w.Line(ctx, "Name of the service", "")
		if err != nil {
			return err
		}
		isNew, err := w.find(name)
		if err == nil {
			return w.use(ctx, name, isNew)
		}
		w.Printf("%v.", err)
	}
}

// find looks up a provider by its name. An unknown one may be a new one, unless the
// name resembles another one or is impossible.
func (w *wizard) find(name string) (isNew bool, err error) {
	if w.kind, err = w.set.FindProvider(name); err == nil {
		return false, nil
	}
	if misspelt := strings.Contains(err.Error(), "did you mean"); !misspelt && config.Choices("providers."+name+".api") != nil {
		return true, nil
	}
	return false, err
}

// use configures the provider next.
func (w *wizard) use(ctx context.Context, name string, isNew bool) error {
	if isNew {
		return w.define(ctx, name)
	}
	w.take("providers.default", name)
	return nil
}

// define asks for the API and the address of a provider with a new name.
func (w *wizard) define(ctx context.Context, name string) error {
	key := "providers." + name + "."
	w.Printf("\n%s is a new provider.", name)
	if err := w.choose(ctx, "Endpoint", nil, "", w.taker(key+"baseUrl")); err != nil {
		return err
	}
	if err := w.choose(ctx, "API", config.Choices(key+"api"), "chat", w.taker(key+"api")); err != nil {
		return err
	}
	if !w.take("providers.default", name) {
		return fmt.Errorf("%s cannot be the default", name)
	}
	var err error
	w.kind, err = w.set.FindProvider(name)
	w.defined = err == nil
	return err
}

// chooseAccess asks how to access providers that offer two ways.
func (w *wizard) chooseAccess(ctx context.Context) error {
	p := w.set.Settings.Providers
	switch w.kind.Name {
	case "foundry":
		w.Printf("\nFoundry Local runs models on this machine; the cloud runs the deployments of a project.")
		return w.choose(ctx, "Foundry", []string{"local", "cloud"}, p.Foundry.Mode, w.taker("providers.foundry.mode"))
	case "gemini":
		w.Printf("\nThe Developer API needs a key; Vertex AI needs a Google Cloud project and gcloud credentials.")
		def := "key"
		if p.Gemini.UseVertexAI {
			def = "vertex"
		}
		if err := w.choose(ctx, "Gemini access", []string{"key", "vertex"}, def, func(access string) bool {
			return w.take("providers.gemini.useVertexai", access == "vertex")
		}); err != nil || !w.set.Settings.Providers.Gemini.UseVertexAI {
			return err
		}
		if err := w.choose(ctx, "Project", nil, p.Gemini.Project, w.taker("providers.gemini.project")); err != nil {
			return err
		}
		return w.choose(ctx, "Location", nil, cmp.Or(p.Gemini.Location, "global"), w.taker("providers.gemini.location"))
	}
	return nil
}

// choose asks until take keeps the answer.
func (w *wizard) choose(ctx context.Context, question string, offered []string, def string, take func(string) bool) error {
	if offered != nil {
		question += " (" + strings.Join(offered, " or ") + ")"
	}
	for {
		answer, err := w.Select(ctx, question, offered, def)
		switch {
		case err != nil:
			return err
		case offered != nil && !slices.Contains(offered, answer):
			w.Printf("Enter %s.", strings.Join(offered, " or "))
		case take(answer):
			return nil
		}
	}
}

// values returns the settings of the chosen provider.
func (w *wizard) values() setup.ProviderValues { return w.kind.Values(&w.set.Settings.Providers) }

func (w *wizard) chooseEndpoint(ctx context.Context) error {
	if w.defined || w.kind.Name == "foundry" && !w.values().Keyed {
		return nil // it was entered, or the service reports its address
	}
	key, def := w.set.Setting(w.kind, "baseUrl"), w.values().BaseURL
	servers := w.localServers(ctx)
	if len(servers) > 0 && !slices.Contains(servers, def) && w.set.Loaded.Source(key).Layer == config.LayerDefault {
		def = servers[0]
	}
	for {
		url, err := w.Select(ctx, "Endpoint", servers, def)
		if err != nil || url == w.values().BaseURL || w.take(key, url) {
			return err // an unchanged endpoint is not saved
		}
	}
}

// localServers prints the model servers found on this machine, with their
// numbers, and returns their addresses. Providers elsewhere have none.
func (w *wizard) localServers(ctx context.Context) []string {
	if !w.kind.Local {
		return nil
	}
	var urls []string
	if w.servers == nil {
		w.servers = setup.FindLocalServers(ctx, w.candidates)
	}
	for i, server := range w.servers {
		if i == 0 {
			w.Printf("\nModel servers on this machine:")
		}
		w.Printf("  %d  %s", i+1, server)
		urls = append(urls, server.URL)
	}
	return urls
}

func (w *wizard) enterKey(ctx context.Context) error {
	w.Printf("\nEnter the key itself, ${NAME} for an environment variable, !COMMAND for the output of a command, or\n"+
		"keyring:NAME for an entry of the system keyring. It is saved in %s, readable only by you.", w.target().Path)
	info := w.set.Describe(w.kind, w.Env).Key
	empty := ""
	switch {
	case info.Status != setup.KeyMissing:
		empty = "keep the one from " + info.From
	case !w.values().Keyed:
		empty = "no key"
	}
	for {
		key, err := w.Secret(ctx, "Key", empty)
		switch {
		case err != nil:
			return err
		case key == "" && empty != "":
			return nil
		case key == "":
			w.Printf("%s needs a key.", w.kind.Name)
		case w.takeKey(ctx, key):
			return w.chooseKeyring(ctx)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// takeKey keeps a key if it is available: its variable is set, its command prints
// it. If not, it prints why.
func (w *wizard) takeKey(ctx context.Context, key string) bool {
	before := *w.set
	if !w.take(w.set.Setting(w.kind, "apiKey"), key) {
		return false
	}
	if _, err := w.values().Key.Reveal(ctx); err != nil {
		*w.set = before
		w.Printf("%v.", err)
		return false
	}
	return true
}

// chooseKeyring offers to save a literal key in the system keyring.
func (w *wizard) chooseKeyring(ctx context.Context) (err error) {
	if w.values().Key.Literal() && w.Keyring != nil && w.Keyring.Available(ctx) {
		w.keyring, err = w.Confirm(ctx, "Save the key in the system keyring instead of the file?", true)
	}
	return err
}

// fillKeyring saves the key in the keyring and replaces it in the answers.
func (w *wizard) fillKeyring(ctx context.Context) error {
	if !w.keyring {
		return nil
	}
	key, err := w.values().Key.Reveal(ctx)
	if err == nil {
		err = w.Keyring.Set(ctx, w.kind.Name, key)
	}
	if err != nil {
		return err
	}
	for i, a := range w.set.Answers {
		if a.Key == w.set.Setting(w.kind, "apiKey") {
			w.set.Answers[i].Value = "keyring:" + w.kind.Name
		}
	}
	return nil
}

func (w *wizard) chooseModel(ctx context.Context) error {
	listCtx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	models, err := w.set.ProviderModels(listCtx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	def := w.values().Model
	w.Printf("")
	switch {
	case err != nil:
		w.Printf("The models cannot be listed: %v", err)
	case len(models) == 0:
		w.Printf("The endpoint lists no models.")
	default:
		if !slices.Contains(models, def) {
			def = models[0]
		}
		w.printModels(models)
	}
	for {
		name, err := w.Select(ctx, "Model", models, def)
		if err != nil || w.take(w.set.Setting(w.kind, "model"), name) {
			return err
		}
	}
}

// printModels prints the first models, with their numbers.
func (w *wizard) printModels(models []string) {
	const most = 30
	w.Printf("Models:")
	for i, name := range models[:min(most, len(models))] {
		w.Printf("  %2d  %s", i+1, name)
	}
	if more := len(models) - most; more > 0 {
		w.Printf("      and %d more (enter the name)", more)
	}
}

// try makes one call. If it fails, the user decides.
func (w *wizard) try(ctx context.Context) error {
	w.Printf("\nTesting with one call…")
	result, chat, err := w.set.Try(ctx)
	if chat {
		w.Printf("The endpoint lacks the Responses API; using Chat Completions.")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		w.Printf("%s answered in %d ms.", result.Model, result.LatencyMS)
		return nil
	}
	w.Printf("The call failed: %s: %v\nWhat to do: %s", result.Error.Code, err, result.Error.Fix)
	anyway, askErr := w.Confirm(ctx, "Save these settings anyway?", false)
	switch {
	case askErr != nil:
		return askErr
	case !anyway:
		return fmt.Errorf("the test failed: %w", err)
	}
	return nil
}

func (w *wizard) target() config.Target { return config.UserFile(w.set.Home) }

// write saves the answers, and prints what overrides them.
func (w *wizard) write(ctx context.Context) error {
	if err := w.fillKeyring(ctx); err != nil {
		return err
	}
	changes, err := w.set.Write(ctx)
	if err != nil {
		return err
	}
	w.Printf("\nWrote %s:", w.target().Path)
	t := cmdutil.NewTable(w.Out)
	for _, a := range w.set.Answers {
		value := a.Value
		if a.Key == w.set.Setting(w.kind, "apiKey") && !w.keyring {
			value = w.values().Key // which prints as [redacted]
		}
		t.Row("  "+a.Key, value)
	}
	_ = t.Flush() // the root command reports failed output
	w.warnOverridden(changes)
	if !w.follows {
		w.Printf("\nTry it:  agent exec \"Hello\"")
	}
	return nil
}

// warnOverridden prints which of the saved settings have no effect here.
func (w *wizard) warnOverridden(changes []config.Change) {
	now, err := setup.NewDraft(w.IO)
	if err != nil { // other commands report it
		return
	}
	for _, c := range changes {
		if from := now.Loaded.Source(c.Key); from.Layer > config.LayerUser {
			w.Printf("%s is overridden by %s.", c.Key, from)
		}
	}
}
