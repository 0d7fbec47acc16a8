package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
)

// Configure asks the questions of agent providers setup about a provider; an empty name
// is another service, whose name is asked for.
type Configure func(ctx context.Context, provider string) error

// tryTime is the time limit of the call that tests a choice: a server may first
// have to load its model.
const tryTime = 2 * time.Minute

// first is the first minute of a user who has not chosen a model yet.
type first struct {
	*run.Options
	asker     *tui.Asker
	servers   []setup.KnownServer
	configure bool   // the user asked for all questions
	other     string // about this provider
	tell      func(markdown string)
}

// firstMinute leads a user who has chosen no provider to one, and asks whether the
// directory is trusted.
func firstMinute(ctx context.Context, o *run.Options, configure Configure) error {
	quiet := *o.IO
	quiet.Err = io.Discard // the session prints the warnings
	set, err := o.Load(&quiet)
	if err != nil {
		return err
	}
	if set.Home == "" || set.Chosen() || o.Recording.On() {
		return nil
	}
	f := &first{Options: o, servers: setup.KnownServers()}
	steps := func(step func(context.Context) error) error {
		return guide(ctx, o.IO, set, func(ctx context.Context, asker *tui.Asker, say func(string)) error {
			f.asker, f.tell = asker, say
			return step(ctx)
		})
	}
	if err := steps(f.chooseProvider); err != nil {
		return err
	}
	if f.configure {
		if err := configure(ctx, f.other); err != nil {
			return err
		}
	}
	if set.Trusted || set.Dir == set.UserHome || set.Dir == filepath.Dir(set.Dir) {
		return nil
	}
	return steps(func(ctx context.Context) error { return f.askTrust(ctx, set) })
}

// chooseProvider offers what is there, and tests and saves the choice.
func (f *first) chooseProvider(ctx context.Context) error {
	f.tell(fmt.Sprintf("**agent** %s works with a model of your choice. Looking for keys, model servers on this machine and signed-in programs…", cmdutil.Version()))
	draft, err := setup.NewDraft(f.IO)
	if err != nil {
		return err
	}
	offers := draft.Offers(ctx, f.servers)
	title := "Which model?"
	if len(offers) == 0 {
		title = "No model was found. What now?"
	}
	failed := map[int]string{}
	for {
		list := tui.List{Title: title}
		for i, o := range offers {
			list.Items = append(list.Items, tui.Item{Label: o.Name, Detail: cmp.Or(failed[i], o.Found)})
		}
		list.Items = append(list.Items,
			tui.Item{Label: "Another provider", Detail: "enter its key or address: agent providers setup"},
			tui.Item{Label: "Not now", Detail: "agent demo shows a session without a model"})
		at, err := f.asker.Choose(ctx, list)
		switch {
		case err != nil:
			return err
		case at == len(offers):
			if f.other, f.configure, err = pickProvider(ctx, f.asker, draft, nil); err != nil || f.configure {
				return err
			}
			continue
		case at < 0 || at > len(offers):
			return nil
		}
		if why := f.use(ctx, *draft, offers[at]); why == nil {
			return nil
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
		failed[at] = "failed just now; " + offers[at].Found
	}
}

// use asks for what is missing, tests the provider and saves it. An error was shown.
func (f *first) use(ctx context.Context, draft setup.Draft, o setup.Offer) error {
	answers, err := f.missing(ctx, o)
	if err == nil {
		err = draft.Take(append(answers, o.Answers...)...)
	}
	if err != nil {
		f.tell(fmt.Sprintf("✗ %v", err))
		return err
	}
	f.tell("Testing **" + o.Name + "** with one call…")
	limited, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	result, chat, err := draft.Try(limited)
	if err != nil {
		if ctx.Err() == nil {
			f.tell(fmt.Sprintf("✗ %v\n\nWhat to do: %s", err, result.Error.Fix))
		}
		return err
	}
	note := ""
	if chat {
		note = ", with Chat Completions since the endpoint lacks the Responses API"
	}
	if _, err := draft.Write(ctx); err != nil {
		f.tell(fmt.Sprintf("✗ %v", err))
		return err
	}
	f.tell(fmt.Sprintf("✓ %s answered in %s%s. Saved in `%s`; `/model` chooses another.",
		result.Model, display.Duration(time.Duration(result.LatencyMS)*time.Millisecond), note, config.UserFile(draft.Home).Path))
	return nil
}

// missing asks for the settings that an offer lacks.
func (f *first) missing(ctx context.Context, o setup.Offer) (answers []config.Flag, err error) {
	for _, key := range o.Missing {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		a, err := f.asker.Ask(ctx, core.Question{
			Kind: core.QuestionForm, Title: o.Name + " needs one more setting",
			Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"value":{"type":"string","title":%s,"minLength":1}},"required":["value"]}`, name)),
		})
		var values struct{ Value string }
		switch {
		case err != nil:
			return nil, err
		case a.Choice != core.ChoiceYes:
			return nil, fmt.Errorf("%s was not entered", key)
		}
		if err := json.Unmarshal(a.Values, &values); err != nil {
			return nil, err
		}
		answers = append(answers, setup.Answer(key, strings.TrimSpace(values.Value)))
	}
	return answers, nil
}

// askTrust asks whether the directory is trusted, and says what that means.
func (f *first) askTrust(ctx context.Context, set *setup.Setup) error {
	files, servers, err := set.Trustable()
	if err != nil {
		f.tell(fmt.Sprintf("This directory cannot be trusted: %v", err))
		return nil
	}
	detail := "Yes: settings, skills, plugins and MCP servers that come with it are used, and the agent writes files in it, and runs commands in a sandbox, without asking each time.\n" +
		"No: nothing of that is used, and the agent asks before it writes or runs anything.\n"
	for _, name := range files {
		detail += "\nIt has " + display.VisibleLine(name, 200)
	}
	for _, name := range cmdutil.SortedKeys(servers) {
		detail += "\nIt has MCP server " + name + ": " + display.VisibleLine(servers[name].Describe(), 300)
	}
	a, err := f.asker.Ask(ctx, core.Question{Kind: core.QuestionConfirm, Title: "Do you trust " + display.VisibleLine(set.Dir, 500) + "?", Detail: strings.TrimSpace(detail)})
	if err != nil || a.Choice != core.ChoiceYes {
		f.tell("Not trusted. `agent trust` changes that.")
		return err
	}
	if err := set.Trust(ctx); err != nil {
		f.tell(fmt.Sprintf("✗ %v", err))
		return nil
	}
	f.tell("Trusted. `agent trust --revoke` takes that back.")
	return nil
}
