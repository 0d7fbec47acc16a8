package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// What a rewind takes back.
const (
	rewindBoth         core.Choice = "conversation and files"
	rewindConversation core.Choice = "conversation"
	rewindFiles        core.Choice = "files"
)

// cmdRewind goes back to before an input.
func (c *chat) cmdRewind(ctx context.Context, args string) (tui.Result, error) {
	h, err := c.session.History(ctx)
	if err != nil {
		return tui.Result{}, err
	}
	turns := slices.DeleteFunc(h.Turns, func(t changes.Turn) bool { return t.Rewound || t.Seq == 0 })
	number, what, _ := strings.Cut(args, " ")
	var turn *changes.Turn
	if number == "" {
		turn, err = c.chooseTurn(ctx, turns)
	} else {
		turn, err = findTurn(turns, number)
	}
	if err != nil || turn == nil {
		return tui.Result{}, err
	}
	list, err := h.Since(turn.Seq)
	if err != nil && !errors.Is(err, changes.ErrNothing) {
		return tui.Result{}, err
	}
	possible := c.rewinds(turn, list)
	choice := core.Choice(map[string]core.Choice{"both": rewindBoth}[what])
	if choice == "" {
		choice = core.Choice(what)
	}
	switch {
	case len(possible) == 0:
		return tui.Result{}, fmt.Errorf("input %d was summarised, and no files were changed since: there is nothing to take back", turn.Seq)
	case choice == "":
		if choice, err = c.askRewind(ctx, turn, list, possible); err != nil || choice == "" {
			return tui.Result{}, err
		}
	case !slices.Contains(possible, choice):
		return tui.Result{}, fmt.Errorf("cannot rewind %q to before input %d; possible: %s", what, turn.Seq, joined(possible))
	}
	return c.rewind(ctx, turn, choice)
}

func joined(choices []core.Choice) string {
	var all []string
	for _, c := range choices {
		all = append(all, string(c))
	}
	return strings.Join(all, ", ")
}

func findTurn(turns []changes.Turn, number string) (*changes.Turn, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(number, "#"), 10, 64)
	i := slices.IndexFunc(turns, func(t changes.Turn) bool { return uint64(t.Seq) == n })
	if err != nil || i < 0 {
		return nil, fmt.Errorf("the conversation has no input %q; /rewind lists them", number)
	}
	return &turns[i], nil
}

// rewinds lists what a rewind to before an input can take back. A conversation
// before a summary is gone.
func (c *chat) rewinds(turn *changes.Turn, list []changes.Change) (all []core.Choice) {
	conversation := slices.Contains(c.session.Inputs(), turn.Seq)
	if conversation && len(list) > 0 {
		all = append(all, rewindBoth)
	}
	if conversation {
		all = append(all, rewindConversation)
	}
	if len(list) > 0 {
		all = append(all, rewindFiles)
	}
	return all
}

// rewind takes back what the user chose, and gives the input back.
func (c *chat) rewind(ctx context.Context, turn *changes.Turn, choice core.Choice) (tui.Result, error) {
	var res tui.Result
	opts := agent.UndoOptions{Since: turn.Seq}
	if choice != rewindConversation {
		if err := c.decide(ctx, &opts); err != nil {
			return res, err
		}
	}
	if choice != rewindFiles {
		if _, err := c.session.Do(ctx, host.Command{Type: "rewind", Input: turn.Seq}); err != nil {
			return res, err
		}
		res.Draft = turn.Input
	}
	if choice == rewindConversation {
		return res, nil
	}
	var err error
	res.Text, err = c.revert(ctx, opts)
	return res, err
}

// chooseTurn shows the inputs with their changes, the latest first; nil if the user
// chooses none.
func (c *chat) chooseTurn(ctx context.Context, turns []changes.Turn) (*changes.Turn, error) {
	if len(turns) == 0 {
		return nil, errors.New("there is no input to go back to")
	}
	latest := slices.Clone(turns)
	slices.Reverse(latest)
	list := tui.List{Title: "Rewind to before which input?"}
	for _, t := range latest {
		list.Items = append(list.Items, tui.Item{Label: display.OneLine(t.Input, 100), Detail: turnDetail(t)})
	}
	list.Preview = func(_ context.Context, at int) string { return turnPage(latest[at]) }
	at, err := c.asker.Choose(ctx, list)
	if err != nil || at < 0 {
		return nil, err
	}
	return &latest[at], nil
}

// turnDetail says what an input changed, when it was, and its number.
func turnDetail(t changes.Turn) string {
	text := "just now"
	if age := time.Since(t.Time).Truncate(time.Minute); age > 0 {
		text = display.Duration(age) + " ago"
	}
	if s := changed(t.Changes); s != "" {
		text = s + " · " + text
	}
	return fmt.Sprintf("%s · #%d", text, t.Seq)
}

// turnPage shows an input and the files that it changed.
func turnPage(t changes.Turn) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**>** %s\n", display.OneLine(t.Input, 500))
	for _, c := range t.Changes {
		for _, f := range c.Files {
			if !c.Undone() {
				fmt.Fprintf(&b, "\n- `%s` +%d -%d", f.Path, f.Added, f.Removed)
			}
		}
	}
	return b.String()
}

// changed counts the files of changes that were not taken back.
func changed(list []changes.Change) string {
	names := map[string]bool{}
	added, removed, more := 0, 0, 0
	for _, c := range list {
		if c.Undone() {
			continue
		}
		for _, f := range c.Files {
			names[c.Root+"/"+f.Path] = true
			added, removed = added+f.Added, removed+f.Removed
		}
		more += c.Left
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s +%d -%d", display.Plural(len(names)+more, "file"), added, removed)
}

// askRewind asks what to take back; empty if nothing.
func (c *chat) askRewind(ctx context.Context, turn *changes.Turn, list []changes.Change, possible []core.Choice) (core.Choice, error) {
	q := core.Question{
		Kind: core.QuestionConfirm, Choices: possible,
		Title: fmt.Sprintf("Rewind to before \"%s\"?", display.OneLine(turn.Input, 60)),
	}
	if s := changed(list); s != "" {
		q.Detail = "Changed since: " + s + "."
	}
	a, err := c.asker.Ask(ctx, q)
	if err != nil || !slices.Contains(possible, a.Choice) {
		return "", err
	}
	return a.Choice, nil
}
