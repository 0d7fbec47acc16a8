package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/model"
)

// listTime is how long an endpoint has to list its models while somebody waits.
const listTime = 15 * time.Second

func newProvidersSetup(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "setup [NAME]",
		Short: "Choose a provider, enter its key, test it, and keep that",
		Long: "setup asks for a provider, its endpoint, its key and a model, makes one call to test them, and writes them to\n" +
			"your settings. Nothing is written before the last question is answered. Answers can be piped in, one a line.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			u := &wizard{Prompter: cmdutil.NewPrompter(s), candidates: setup.KnownServers}
			if len(args) > 0 {
				var err error
				if u.kind, err = setup.FindProvider(args[0]); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithCancelCause(cmd.Context())
			defer cancel(nil)
			watched, stop := cmdutil.Interrupts(ctx, io.Discard, func() { cancel(cmdutil.ErrInterrupted) })
			err := u.run(watched)
			if sig := stop(); sig != nil && err != nil {
				err = sig
			}
			if err != nil {
				return fmt.Errorf("%w; nothing was written", err)
			}
			return nil
		},
	}
}

// wizard is one run through the questions.
type wizard struct {
	*cmdutil.Prompter
	candidates []setup.KnownServer // that may run on this machine

	kind    setup.ProviderKind // without a name until it is chosen
	set     *setup.Setup       // with the answers so far
	answers []config.Flag
	ring    bool // the key goes to the keyring, not to the settings
}

// run asks, tests and writes. With an error, nothing was written.
func (u *wizard) run(ctx context.Context) error {
	var err error
	if u.set, err = u.load(); err != nil {
		return err
	}
	if u.set.Home == "" {
		return &config.Error{Err: errors.New("there is no home directory to keep settings in: set HOME or AGENT_HOME")}
	}
	for _, step := range []func(context.Context) error{u.chooseProvider, u.chooseWay, u.chooseEndpoint, u.enterKey, u.chooseModel, u.try} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return u.write(ctx)
}

// load returns the settings with the answers laid over them.
func (u *wizard) load() (*setup.Setup, error) {
	quiet := *u.IO
	quiet.Err = io.Discard // warnings belong to other commands
	return (&setup.Flags{Extra: u.answers}).Load(&quiet)
}

// take keeps an answer if it is a valid value of its key; if not, it says why.
func (u *wizard) take(key string, value any) bool {
	before := u.answers
	u.answers = append(slices.Clone(before), config.Flag{Name: "That will not do", Key: key, Value: value})
	set, err := u.load()
	if err != nil {
		u.answers = before
		u.Printf("%v.", err)
		return false
	}
	u.set = set
	return true
}

func (u *wizard) chooseProvider(ctx context.Context) error {
	u.Printf("This sets up where models are reached. Nothing is written before the end.")
	if u.kind.Name != "" {
		u.take("providers.default", u.kind.Name)
		return nil
	}
	u.Printf("\nProviders:")
	for i, k := range setup.ProviderKinds() {
		u.Printf("  %d  %-9s  %s", i+1, k.Name, k.About)
	}
	for {
		name, err := u.Select(ctx, "Provider", setup.ProviderNames(), u.set.Settings.Providers.Default)
		if err != nil {
			return err
		}
		if u.kind, err = setup.FindProvider(name); err == nil {
			u.take("providers.default", name)
			return nil
		}
		u.Printf("%v.", err)
	}
}

// chooseWay asks how a provider is reached that can be reached in two ways.
func (u *wizard) chooseWay(ctx context.Context) error {
	p := u.set.Settings.Providers
	switch u.kind.Name {
	case "foundry":
		u.Printf("\nFoundry Local runs models on this machine; the cloud has a project's deployments.")
		return u.choose(ctx, "Foundry", []string{"local", "cloud"}, p.Foundry.Mode, func(way string) bool {
			return u.take("providers.foundry.mode", way)
		})
	case "gemini":
		u.Printf("\nThe Developer API takes a key; Vertex AI takes a project of Google Cloud, and gcloud's credentials.")
		def := "key"
		if p.Gemini.UseVertexAI {
			def = "vertex"
		}
		if err := u.choose(ctx, "Gemini by", []string{"key", "vertex"}, def, func(way string) bool {
			return u.take("providers.gemini.useVertexai", way == "vertex")
		}); err != nil || !u.set.Settings.Providers.Gemini.UseVertexAI {
			return err
		}
		if err := u.choose(ctx, "Project", nil, p.Gemini.Project, func(project string) bool {
			return u.take("providers.gemini.project", project)
		}); err != nil {
			return err
		}
		return u.choose(ctx, "Location", nil, cmp.Or(p.Gemini.Location, "global"), func(location string) bool {
			return u.take("providers.gemini.location", location)
		})
	}
	return nil
}

// choose asks until the answer is one that take keeps.
func (u *wizard) choose(ctx context.Context, question string, offered []string, def string, take func(string) bool) error {
	if offered != nil {
		question += " (" + strings.Join(offered, " or ") + ")"
	}
	for {
		answer, err := u.Select(ctx, question, offered, def)
		switch {
		case err != nil:
			return err
		case offered != nil && !slices.Contains(offered, answer):
			u.Printf("Enter %s.", strings.Join(offered, " or "))
		case take(answer):
			return nil
		}
	}
}

// values are the settings of the chosen provider.
func (u *wizard) values() setup.ProviderValues { return u.kind.Values(&u.set.Settings.Providers) }

func (u *wizard) chooseEndpoint(ctx context.Context) error {
	def, offered := u.values().BaseURL, []string(nil)
	if u.kind.Name == "foundry" && !u.values().Keyed {
		return nil // its service says where it listens
	}
	if u.kind.Local {
		servers := setup.FindLocalServers(ctx, u.candidates)
		for _, f := range servers {
			offered = append(offered, f.URL)
		}
		if len(servers) > 0 {
			u.Printf("\nModel servers that answer on this machine:")
			for i, f := range servers {
				u.Printf("  %d  %s", i+1, f)
			}
			if !slices.Contains(offered, def) && u.set.Loaded.Source(u.set.Setting(u.kind, "baseUrl")).Layer == config.LayerDefault {
				def = offered[0]
			}
		}
	}
	for {
		url, err := u.Select(ctx, "Endpoint", offered, def)
		if err != nil || url == u.values().BaseURL || u.take(u.set.Setting(u.kind, "baseUrl"), url) {
			return err // an endpoint that follows from other settings is not written down
		}
	}
}

func (u *wizard) enterKey(ctx context.Context) error {
	u.Printf("\nA key is the key itself, ${NAME} for an environment variable, !COMMAND for what a command prints, or\n"+
		"keyring:NAME for an entry of this system's keyring. It is kept in %s, which only you can read.", u.target().Path)
	info := u.set.Describe(u.kind, u.Env).Key
	empty := ""
	switch {
	case info.Status != setup.KeyMissing:
		empty = "keep that of " + info.From
	case !u.values().Keyed:
		empty = "none"
	}
	for {
		key, err := u.Secret(ctx, "Key", empty)
		switch {
		case err != nil:
			return err
		case key == "" && empty != "":
			return nil
		case key == "":
			u.Printf("%s needs a key.", u.kind.Name)
		case u.takeKey(ctx, key):
			return u.chooseKeyring(ctx)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// takeKey keeps a key if it can be had: its variable is set, its command
// prints it. If not, it says why.
func (u *wizard) takeKey(ctx context.Context, key string) bool {
	answers, set := u.answers, u.set
	if !u.take(u.set.Setting(u.kind, "apiKey"), key) {
		return false
	}
	if _, err := u.values().Key.Reveal(ctx); err != nil {
		u.answers, u.set = answers, set
		u.Printf("%v.", err)
		return false
	}
	return true
}

// chooseKeyring offers the system's keyring for a key that would stand in the
// settings itself.
func (u *wizard) chooseKeyring(ctx context.Context) (err error) {
	if u.values().Key.Literal() && u.Keyring != nil && u.Keyring.Available(ctx) {
		u.ring, err = u.Confirm(ctx, "Keep it in this system's keyring rather than in the file?", true)
	}
	return err
}

// fillKeyring puts the key into the keyring, and its place into the answers.
func (u *wizard) fillKeyring(ctx context.Context) error {
	if !u.ring {
		return nil
	}
	key, err := u.values().Key.Reveal(ctx)
	if err == nil {
		err = u.Keyring.Set(ctx, u.kind.Name, key)
	}
	if err != nil {
		return err
	}
	for i, a := range u.answers {
		if a.Key == u.set.Setting(u.kind, "apiKey") {
			u.answers[i].Value = "keyring:" + u.kind.Name
		}
	}
	return nil
}

func (u *wizard) chooseModel(ctx context.Context) error {
	const most = 30
	asking, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	models, err := u.set.ProviderModels(asking)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	def := u.values().Model
	u.Printf("")
	switch {
	case err != nil:
		u.Printf("The endpoint does not list its models: %v", err)
	case len(models) == 0:
		u.Printf("The endpoint has no models yet.")
	default:
		if !slices.Contains(models, def) {
			def = models[0]
		}
		u.Printf("Models:")
		for i, name := range models[:min(most, len(models))] {
			u.Printf("  %2d  %s", i+1, name)
		}
		if more := len(models) - most; more > 0 {
			u.Printf("      and %d more, by name", more)
		}
	}
	for {
		name, err := u.Select(ctx, "Model", models, def)
		if err != nil || u.take(u.set.Setting(u.kind, "model"), name) {
			return err
		}
	}
}

// try makes one call. If it fails, the person decides.
func (u *wizard) try(ctx context.Context) error {
	u.Printf("\nTesting with one call…")
	result, err := u.set.Call(ctx, u.Env)
	if err != nil && u.onlyChat(err) {
		u.Printf("It only has the chat API, so that is used.")
		result, err = u.set.Call(ctx, u.Env)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		u.Printf("%s answered in %d ms.", result.Model, result.LatencyMS)
		return nil
	}
	u.Printf("It failed: %s: %v\nWhat to do: %s", result.Error.Code, err, result.Error.Fix)
	anyway, askErr := u.Confirm(ctx, "Keep these settings anyway?", false)
	switch {
	case askErr != nil:
		return askErr
	case !anyway:
		return fmt.Errorf("the test failed: %w", err)
	}
	return nil
}

// onlyChat reports whether a service that speaks OpenAI's protocol does not have
// its newer API, and chooses the older one then.
func (u *wizard) onlyChat(err error) bool {
	missing := model.AsError(err).Status == http.StatusNotFound && setup.CodeOf(err) != model.CodeModelNotFound
	return missing && u.kind.Name == "openai" && u.set.Settings.Providers.OpenAI.API == "responses" && u.take("providers.openai.api", "chat")
}

func (u *wizard) target() config.Target { return config.UserFile(u.set.Home) }

// write keeps the answers, and says where and what else holds.
func (u *wizard) write(ctx context.Context) error {
	if err := u.fillKeyring(ctx); err != nil {
		return err
	}
	var changes []config.Change
	for _, a := range u.answers {
		text, err := json.Marshal(a.Value) // a string stays one, whatever it looks like
		if err != nil {
			return err
		}
		changes = append(changes, config.Change{Key: a.Key, Value: string(text)})
	}
	if err := u.target().SetAll(ctx, changes); err != nil {
		return err
	}
	u.Printf("\nWrote %s:", u.target().Path)
	w := tabwriter.NewWriter(u.Out, 0, 0, 2, ' ', 0)
	for _, a := range u.answers {
		value := a.Value
		if a.Key == u.set.Setting(u.kind, "apiKey") && !u.ring {
			value = u.values().Key // which never shows itself
		}
		fmt.Fprintf(w, "  %s\t%v\n", a.Key, value)
	}
	_ = w.Flush() // run looks at failed output
	u.answers = nil
	if now, err := u.load(); err == nil {
		for _, c := range changes {
			if from := now.Loaded.Source(c.Key); from.Layer > config.LayerUser {
				u.Printf("Here, %s comes from %s instead.", c.Key, from)
			}
		}
	}
	u.Printf("\nTry it:  agent exec \"Hello\"")
	return nil
}
