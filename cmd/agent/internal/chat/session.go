package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func (c *chat) cmdModel(ctx context.Context, args string) (string, error) {
	name := strings.TrimSpace(args)
	typed := name != ""
	if !typed && c.asker.Listing() {
		if name, _ = c.chooseModel(ctx); name == "" {
			return "", nil
		}
	}
	if name == "" {
		return "The model is `" + c.modelName() + "`. `/model NAME` switches to another; `agent models` lists those of the provider.", nil
	}
	if err := c.change(ctx, settingModel, name); err != nil {
		return "", err
	}
	c.mu.Lock()
	prof := c.opts.Profile
	c.mu.Unlock()
	text := "Next calls use `" + c.modelName() + "`, profile " + prof.Name + "."
	if typed {
		text += c.unlisted(ctx)
	}
	return text, nil
}

// unlisted says that the provider does not list the model, if so: the name may be
// misspelt, but not every provider lists every name that it accepts.
func (c *chat) unlisted(ctx context.Context) string {
	provider, name, _ := strings.Cut(c.modelName(), "/")
	names, err := c.listModels(ctx, provider)
	if err != nil || len(names) == 0 || slices.Contains(names, name) {
		return ""
	}
	note := " " + provider + " does not list this model"
	if near := jsonpos.Nearest(name, names); near != "" {
		return note + "; did you mean `" + near + "`?"
	}
	return note + "."
}

// listTime limits the request for a provider's models.
const listTime = 3 * time.Second

// unknownProvider returns the error of a name A/B that is neither of a provider A
// nor a model of the current provider, as far as that can be told.
func (c *chat) unknownProvider(ctx context.Context, using, name string) error {
	head, _, ok := strings.Cut(name, "/")
	if !ok {
		return nil
	}
	names, err := c.listModels(ctx, using)
	if err != nil || len(names) == 0 || slices.Contains(names, name) {
		return nil // the provider will say
	}
	_, err = c.set.FindProvider(head)
	return fmt.Errorf("%s has no model %q, and %w", using, name, err)
}

func (c *chat) listModels(ctx context.Context, provider string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	k, err := c.set.FindProvider(provider)
	if err != nil {
		return nil, err
	}
	p, err := c.set.Open(ctx, k, "")
	if err != nil {
		return nil, err
	}
	return model.ListModels(ctx, p)
}

// completeModel lists the completions of the argument of /model: the models of the
// current provider, providers, and models of the provider that is named.
func (c *chat) completeModel(ctx context.Context, prefix string) []string {
	c.mu.Lock()
	using := c.opts.Provider.Info().Name
	c.mu.Unlock()
	out, before := c.set.KnownModels(), ""
	providers := c.set.Settings.Providers.Names()
	if first, _, ok := strings.Cut(prefix, "/"); ok && slices.Contains(providers, first) {
		using, before = first, first+"/"
	} else {
		for _, name := range providers {
			out = append(out, name+"/")
		}
	}
	names, _ := c.listModels(ctx, using) // without them, the providers can be completed
	for _, name := range names {
		out = append(out, before+name)
	}
	out = slices.DeleteFunc(out, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *chat) cmdTools(ctx context.Context, _ string) (string, error) {
	c.mu.Lock()
	table := c.agent.ToolsOf(c.opts.Profile.Name)
	c.mu.Unlock()
	snapshot, err := table.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| Tool | Source | Scopes | Tokens |\n| --- | --- | --- | --- |\n")
	for _, e := range snapshot.Entries() {
		i := setup.ToolInfoOf(e)
		scopes := make([]string, len(i.Scopes))
		for j, s := range i.Scopes {
			scopes[j] = string(s)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", i.Name, i.Source, strings.Join(scopes, ", "), i.Tokens)
	}
	return b.String(), nil
}

func (c *chat) cmdPermissions(ctx context.Context, args string) (string, error) {
	if strings.TrimSpace(args) != "" {
		return c.cmdMode(ctx, args)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Mode **%s**.", c.mode())
	rules := c.policy.Rules()
	if len(rules) == 0 {
		b.WriteString(" No rules; add some with `--allow`, `--deny` or `permissions` in the settings.")
	}
	b.WriteString("\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "- %s `%s` (%s)\n", r.List, r.Rule, r.Where)
	}
	return b.String(), nil
}

func (c *chat) cmdSession(context.Context, string) (string, error) {
	text := "Session `" + c.session.ID() + "`"
	if log := c.session.Log(); log != "" {
		return text + ", saved in `" + log + "`. Resume it with `agent -r " + c.session.ID() + "`.", nil
	}
	return text + ", not saved.", nil
}

func (c *chat) cmdCost(context.Context, string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usage
	text := fmt.Sprintf("%s, %d tokens: %d in (%d cached), %d out (%d reasoning).", display.Plural(c.calls, "model call"), u.Total(), u.Input, u.CachedInput, u.Output, u.Reasoning)
	switch {
	case c.priced:
		return fmt.Sprintf("%s $%.4f at the prices of %s.", text, c.cost, facts.Date()), nil
	case c.cost > 0:
		return fmt.Sprintf("%s $%.4f, without calls whose price is unknown.", text, c.cost), nil
	}
	return text + " The price of this model is unknown; set it in the setting models.", nil
}

// cmdResume resumes a session, one that the user chooses if none is named.
func (c *chat) cmdResume(ctx context.Context, args string) (tui.Result, error) {
	dir := agent.SessionsDir(c.set.Home)
	id := strings.TrimSpace(args)
	if id == "" {
		var err error
		if id, err = c.chooseSession(ctx, dir); err != nil || id == "" {
			return tui.Result{}, err
		}
	}
	found, err := store.Find(dir, id)
	if err != nil {
		return tui.Result{}, err
	}
	return tui.Result{Next: &tui.Next{Kind: tui.NextResume, Session: found}}, nil
}

// cmdSkills lists the skills.
func (c *chat) cmdSkills(ctx context.Context, _ string) (tui.Result, error) {
	if c.library == nil {
		return tui.Result{Text: "Skills are disabled, by the settings or --bare."}, nil
	}
	if c.asker.Listing() && len(c.library.Catalog().Skills) > 0 {
		return c.chooseSkill(ctx)
	}
	var b strings.Builder
	b.WriteString("| Skill | Scope | State | Purpose |\n| --- | --- | --- | --- |\n")
	for _, s := range c.library.Catalog().Skills {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Name, s.Scope, s.State, strings.ReplaceAll(display.OneLine(s.Brief, 80), "|", "/"))
	}
	return tui.Result{Text: b.String()}, nil
}

// cmdPlugins lists the session's plugins.
func (c *chat) cmdPlugins(context.Context, string) (string, error) {
	host := c.agent.Plugins()
	if host == nil || len(host.Plugins())+len(host.Broken()) == 0 {
		return "No plugins. Add one with `agent plugins add`.", nil
	}
	cell := func(text string, most int) string { return strings.ReplaceAll(display.OneLine(text, most), "|", "/") }
	var b strings.Builder
	b.WriteString("| Plugin | Scope | State | Tools | Permissions |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range host.Plugins() {
		i := c.set.PluginInfo(p)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", i.Name, i.Scope, i.State, cell(i.ToolNames(), 60), cell(strings.Join(i.Manifest.Lines(), "; "), 120))
	}
	for _, broken := range host.Broken() {
		fmt.Fprintf(&b, "\n- **%s** is broken: %s", broken.Plugin, cell(broken.Err.Error(), 300))
	}
	return b.String(), nil
}
