package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model/facts"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/skills"
)

// chooseModel lets the user choose a model, of those that are known of configured
// providers and those that the current provider lists. It returns "" if none is
// chosen.
func (c *chat) chooseModel(ctx context.Context) (string, error) {
	now := c.modelName()
	list := tui.List{Title: "Which model? Now: " + now, Items: c.modelItems(ctx)}
	if len(list.Items) == 0 {
		using, _, _ := strings.Cut(now, "/")
		return "", fmt.Errorf("no models are known for %s: enter /model NAME", using)
	}
	list.At = max(0, slices.IndexFunc(list.Items, func(i tui.Item) bool { return i.Label == now }))
	list.Preview = func(_ context.Context, at int) string {
		return modelPage(list.Items[at].Label, c.factsOf(list.Items[at].Label))
	}
	at, err := c.asker.Choose(ctx, list)
	if err != nil || at < 0 {
		return "", err
	}
	return list.Items[at].Label, nil
}

// modelItems lists the models to choose from; those whose provider has no key come
// last.
func (c *chat) modelItems(ctx context.Context) (items []tui.Item) {
	using, _, _ := strings.Cut(c.modelName(), "/")
	var keyless []tui.Item
	seen := map[string]bool{}
	for _, name := range c.completeModel(ctx, "") {
		if strings.HasSuffix(name, "/") {
			continue // a provider
		}
		provider, _, ok := strings.Cut(name, "/")
		if !ok || !c.isProvider(provider) {
			provider, name = using, using+"/"+name
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		detail := modelDetail(c.factsOf(name))
		if kind, err := c.set.FindProvider(provider); err == nil && c.set.Describe(kind, c.Env).Key.Lacking() {
			keyless = append(keyless, tui.Item{Label: name, Detail: strings.TrimSuffix("no key · "+detail, " · ")})
			continue
		}
		items = append(items, tui.Item{Label: name, Detail: detail})
	}
	return append(items, keyless...)
}

func (c *chat) isProvider(name string) bool {
	for _, other := range c.set.Settings.Providers.Names() {
		if other == name {
			return true
		}
	}
	return false
}

// factsOf returns what is known of PROVIDER/MODEL.
func (c *chat) factsOf(full string) facts.Model {
	provider, name, _ := strings.Cut(full, "/")
	return c.set.Facts(provider, name)
}

// modelDetail is a model's window and price in a few words.
func modelDetail(m facts.Model) string {
	var parts []string
	if m.Context > 0 {
		parts = append(parts, display.Count(m.Context)+" tokens")
	}
	if p := m.Price; p != nil {
		if p.Input == 0 && p.Output == 0 {
			parts = append(parts, "free")
		} else {
			parts = append(parts, fmt.Sprintf("$%g in, $%g out", p.Input, p.Output))
		}
	}
	return strings.Join(parts, " · ")
}

// modelPage describes a model.
func modelPage(full string, m facts.Model) string {
	if !m.Known {
		return "**" + full + "**: nothing is known of it; the setting `models` can say more."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** %s\n\n", full, m.Name)
	fmt.Fprintf(&b, "- context window %s tokens, answers of up to %s\n", display.Count(m.Context), display.Count(m.Output))
	if p := m.Price; p != nil {
		fmt.Fprintf(&b, "- per million tokens, in dollars: %s (input / cached / cache write / output)\n", p)
	}
	if m.Cutoff != "" {
		fmt.Fprintf(&b, "- knows the time until %s\n", m.Cutoff)
	}
	fmt.Fprintf(&b, "- reasoning: %s, images: %s\n", yesNo(m.Reasoning), yesNo(m.Vision))
	return b.String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// chooseSession lets the user choose one of the sessions of this directory, without
// those of subagents. It returns "" if none is chosen.
func (c *chat) chooseSession(ctx context.Context, dir string) (string, error) {
	all, err := store.List(dir)
	if err != nil && len(all) == 0 {
		return "", err
	}
	agents := map[string]int{}
	for _, s := range all {
		agents[s.Parent]++
	}
	var found []store.Summary
	list := tui.List{Title: "Which session?"}
	for _, s := range all {
		if s.ID == c.session.ID() || !resumable(s, c.set.Dir) {
			continue
		}
		detail := strings.Replace(cmdutil.Age(time.Since(s.Time))+" ago", "now ago", "now", 1) + " · " + s.Short
		if n := agents[s.ID]; n > 0 {
			detail += " · " + display.Plural(n, "subagent")
		}
		found = append(found, s)
		list.Items = append(list.Items, tui.Item{Label: display.OneLine(s.Text, 100), Detail: detail})
	}
	if len(found) == 0 {
		return "", errors.New("no other session in this directory")
	}
	list.Preview = func(ctx context.Context, at int) string { return sessionPage(ctx, dir, found[at]) }
	at, err := c.asker.Choose(ctx, list)
	if err != nil || at < 0 {
		return "", err
	}
	return found[at].ID, nil
}

// resumable reports whether a session of a directory is offered: none of a subagent,
// and none that was left before the first input.
func resumable(s store.Summary, dir string) bool {
	const read = 1 << 20 // bytes of a log in which a first input is found
	return s.Cwd == dir && s.Parent == "" && (s.Text != "" || s.Size >= read)
}

// sessionPage shows the end of a session, and what it changed.
func sessionPage(ctx context.Context, dir string, s store.Summary) string {
	var last, answer string
	changed := map[string]bool{}
	inputs := 0
	for e, err := range store.Read(ctx, dir, s.ID, 0) {
		if err != nil {
			break
		}
		switch b := e.Body.(type) {
		case event.User:
			last, answer = tui.Entered(b.Content), ""
			inputs++
		case event.Message:
			answer = b.Content.Text()
		case event.FilesChanged:
			for _, f := range b.Files {
				changed[f.Path] = true
			}
		}
	}
	text := fmt.Sprintf("%s, %s changed\n\n**>** %s\n", display.Plural(inputs, "input"), display.Plural(len(changed), "file"), display.OneLine(last, 200))
	if answer != "" {
		text += "\n" + answer
	}
	return text
}

// chooseSkill lets the user choose a skill, whose command comes into the box.
func (c *chat) chooseSkill(ctx context.Context) (tui.Result, error) {
	var active []*skills.Skill
	list := tui.List{Title: "Which skill?"}
	for _, s := range c.library.Catalog().Skills {
		active = append(active, s)
		list.Items = append(list.Items, tui.Item{Label: s.Name, Detail: fmt.Sprintf("%s, %s · %s", s.Scope, s.State, display.OneLine(s.Brief, 100))})
	}
	list.Preview = func(_ context.Context, at int) string {
		return "**" + active[at].FullName() + "** " + active[at].Description
	}
	at, err := c.asker.Choose(ctx, list)
	if err != nil || at < 0 {
		return tui.Result{}, err
	}
	return tui.Result{Draft: "/" + active[at].FullName() + " "}, nil
}
