package chat

import (
	"context"
	"errors"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
)

// Terminal returns the terminal as the user's settings have it, for whatever is shown
// there.
func Terminal(s *cmdutil.IO, set *setup.Setup) (tui.Options, error) {
	keys, err := readKeys(set.Home)
	t := set.Settings.Terminal
	return tui.Options{
		In: s.In, Out: s.Terminal, Env: s.Env,
		LineByLine: t.ScreenReader, Keys: keys, Vim: t.Keys == "vim", Notify: tui.Notify(t.Notify), Theme: t.Theme,
	}, err
}

// guide runs steps on the terminal, before there is a session.
func guide(ctx context.Context, s *cmdutil.IO, set *setup.Setup, steps func(ctx context.Context, asker *tui.Asker, say func(markdown string)) error) error {
	o, err := Terminal(s, set)
	if err != nil {
		return err
	}
	o.Asker, o.Title, o.Dir = tui.NewAsker(), "agent", set.Dir
	err = tui.Guide(ctx, o, func(ctx context.Context, say func(string)) error { return steps(ctx, o.Asker, say) })
	switch {
	case errors.Is(err, tui.ErrTerminated):
		return cmdutil.ErrTerminated
	case errors.Is(err, context.Canceled) && ctx.Err() == nil:
		return cmdutil.ErrInterrupted
	}
	return err
}

// PickProvider asks on the terminal which provider is to be configured. The name is
// empty if it is to be another service; the error is ErrInterrupted if the user chooses
// none.
func PickProvider(ctx context.Context, s *cmdutil.IO, draft *setup.Draft, servers []setup.LocalServer) (name string, err error) {
	err = guide(ctx, s, draft.Setup, func(ctx context.Context, asker *tui.Asker, _ func(string)) (err error) {
		var chosen bool
		if name, chosen, err = pickProvider(ctx, asker, draft, servers); err == nil && !chosen {
			err = cmdutil.ErrInterrupted
		}
		return err
	})
	return name, err
}

// pickProvider offers all providers, and marks what was found of them.
func pickProvider(ctx context.Context, asker *tui.Asker, draft *setup.Draft, servers []setup.LocalServer) (name string, chosen bool, err error) {
	kinds, preferred := draft.ProviderKinds(), draft.Preferred(servers)
	list := tui.List{Title: "Which provider?"}
	for i, k := range kinds {
		detail := k.About
		if found := draft.Found(k, servers); found != "" {
			detail += " (" + found + ")"
		}
		list.Items = append(list.Items, tui.Item{Label: k.Name, Detail: detail})
		if k.Name == preferred {
			list.At = i
		}
	}
	list.Items = append(list.Items, tui.Item{Label: "Another service", Detail: "give it a name, and enter its address"})
	at, err := asker.Choose(ctx, list)
	if err == nil && at >= 0 && at < len(kinds) {
		name = kinds[at].Name
	}
	return name, at >= 0, err
}
