package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/registry"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func newTools(s *streams) *cobra.Command {
	return group("tools", "List the tools, show one, call one", newToolsList(s), newToolsShow(s), newToolsCall(s))
}

// toolInfo is a tool as lists show it.
type toolInfo struct {
	Name        string          `json:"name"`
	Source      string          `json:"source"`
	ReadOnly    bool            `json:"readOnly"`
	Scopes      []core.Scope    `json:"scopes"`
	Tokens      int             `json:"tokens"`             // that its definition takes in each request, estimated
	Deferred    bool            `json:"deferred,omitempty"` // it is in no request until the model searches for it
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

func infoOf(e core.Entry) toolInfo {
	d := e.Tool.Definition()
	return toolInfo{
		Name: e.ModelName, Source: e.Source, ReadOnly: d.ReadOnly, Scopes: append([]core.Scope{}, d.Scopes...), Description: d.Description,
		Schema: d.Schema, Tokens: registry.Tokens(e), Deferred: e.Deferred,
	}
}

func newToolsList(s *streams) *cobra.Command {
	sh, asJSON := &shared{}, false
	cmd := &cobra.Command{
		Use: "list", Short: "List the tools of the profile in force with their source, scopes and cost in tokens", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withTools(cmd.Context(), s, sh, func(set *settings, a *agent.Agent, _ *core.Snapshot) error {
				p, err := set.profile(set.Settings.Providers.Default, set.Loaded.Model())
				if err != nil {
					return err
				}
				snapshot, err := a.ToolsFor(p).Snapshot(cmd.Context())
				if snapshot == nil {
					return err
				}
				infos := []toolInfo{}
				for _, e := range snapshot.Entries() {
					info := infoOf(e)
					info.Schema = nil
					infos = append(infos, info)
				}
				if asJSON {
					return printJSON(s.out, infos)
				}
				return printTools(s.out, infos)
			})
		},
	}
	sh.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printTools(out io.Writer, infos []toolInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSOURCE\tSCOPES\tTOKENS\tDESCRIPTION")
	total, deferred := 0, 0
	for _, i := range infos {
		scopes := make([]string, len(i.Scopes))
		for j, sc := range i.Scopes {
			scopes[j] = string(sc)
		}
		if len(scopes) == 0 {
			scopes = []string{"none"}
		}
		tokens := fmt.Sprint(i.Tokens)
		if i.Deferred {
			tokens = "searched"
			deferred++
		} else {
			total += i.Tokens
		}
		first, _, _ := strings.Cut(i.Description, "\n")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", i.Name, i.Source, strings.Join(scopes, ","), tokens, display.OneLine(first, 60))
	}
	fmt.Fprintf(w, "%s\t\t\t%d\t\n", plural(len(infos), "tool"), total)
	if err := w.Flush(); err != nil || deferred == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "%s too many for the prompt: the model searches for them (see the setting tools.search).\n", areMany(deferred))
	return err
}

func areMany(n int) string {
	if n == 1 {
		return "1 tool is"
	}
	return fmt.Sprintf("%d tools are", n)
}

func newToolsShow(s *streams) *cobra.Command {
	sh, asJSON := &shared{}, false
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a tool as the model sees it", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withTools(cmd.Context(), s, sh, func(_ *settings, _ *agent.Agent, snapshot *core.Snapshot) error {
				e, ok := snapshot.Lookup(args[0])
				if !ok {
					return noTool(args[0], snapshot)
				}
				info := infoOf(e)
				if asJSON {
					return printJSON(s.out, info)
				}
				fmt.Fprintf(s.out, "%s (%s), about %d tokens\n\n%s\n\n", info.Name, info.Source, info.Tokens, strings.TrimSpace(info.Description))
				return printJSON(s.out, info.Schema)
			})
		},
	}
	sh.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newToolsCall(s *streams) *cobra.Command {
	sh, asJSON, args := &shared{}, false, ""
	cmd := &cobra.Command{
		Use:   "call NAME",
		Short: "Call a tool through the whole pipeline, permissions included",
		Long: "call runs a tool as a model would have it run and prints what the model would get.\n" +
			"What would be asked is denied; --allow grants it. The exit code is 1 if the result is an error.",
		Example: "  agent tools call read_file --args '{\"file_path\": \"README.md\"}'\n" +
			"  agent tools call shell --args @args.json --allow 'shell(go test *)'",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			text, err := argsText(args)
			if err != nil {
				return err
			}
			return withTools(cmd.Context(), s, sh, func(set *settings, a *agent.Agent, snapshot *core.Snapshot) error {
				if _, ok := snapshot.Lookup(names[0]); !ok {
					return noTool(names[0], snapshot)
				}
				opts := agent.SessionOptions{Ephemeral: true}
				if err := set.sessionOptions(&opts); err != nil {
					return err
				}
				opts.Profile = core.Profile{Name: "all"} // no model is asked, and every tool is there
				return callTool(cmd.Context(), s, a, opts, model.ToolCall{ID: "call", Name: names[0], Args: text}, asJSON)
			})
		},
	}
	sh.register(cmd.Flags())
	cmd.Flags().StringVar(&args, "args", "{}", "its arguments as `JSON`, or @FILE")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the tool_result event as JSON")
	return cmd
}

// argsText returns the arguments of --args.
func argsText(args string) (string, error) {
	if file, ok := strings.CutPrefix(args, "@"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", &usageError{fmt.Errorf("--args: %w", err)}
		}
		return string(data), nil
	}
	return args, nil
}

// callTool runs one call in a session whose model asks for just that.
func callTool(ctx context.Context, s *streams, a *agent.Agent, opts agent.SessionOptions, call model.ToolCall, asJSON bool) error {
	opts.Provider = &oneCall{call: call}
	session, err := a.NewSession(ctx, opts)
	if err != nil {
		return err
	}
	defer session.Close()
	watched, stop := interrupts(ctx, s.err, func() { session.Cancel("interrupted by Ctrl-C") })
	_, err = session.Submit(watched, core.TextInput("call "+call.Name))
	if sig := stop(); sig != nil {
		return sig
	}
	if err != nil {
		return err
	}
	_ = session.Close() // ends the events
	for e, err := range session.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if res, ok := e.Body.(event.ToolResult); ok {
			return printResult(s, e, res, asJSON)
		}
	}
	return fmt.Errorf("%s gave no result", call.Name)
}

func printResult(s *streams, e event.Event, res event.ToolResult, asJSON bool) error {
	if asJSON {
		if err := printJSON(s.out, e); err != nil {
			return err
		}
	} else {
		for _, p := range res.Content {
			switch p := p.(type) {
			case model.Text:
				fmt.Fprintln(s.out, strings.TrimRight(p.Text, "\n"))
			case model.Image:
				fmt.Fprintf(s.out, "[image %s, %d bytes]\n", p.MediaType, max(p.Bytes, len(p.Data)))
			}
		}
	}
	if res.IsError {
		return &statusError{exitError}
	}
	return nil
}

// oneCall is a model that asks for one call and is done.
type oneCall struct {
	call model.ToolCall
	made bool
}

// Info implements [model.Provider].
func (*oneCall) Info() model.ProviderInfo { return model.ProviderInfo{Name: "none", Model: "none"} }

// Stream implements [model.Provider].
func (p *oneCall) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	deltas := []model.Delta{
		{Kind: model.DeltaToolStart, ID: p.call.ID, Name: p.call.Name},
		{Kind: model.DeltaToolArgs, Text: p.call.Args},
		{Kind: model.DeltaToolEnd},
		{Kind: model.DeltaDone, Stop: model.StopToolCalls},
	}
	if p.made {
		deltas = []model.Delta{{Kind: model.DeltaDone, Stop: model.StopEnd}}
	}
	p.made = true
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// withTools opens an agent from settings and flags and hands over its tools.
func withTools(ctx context.Context, s *streams, sh *shared, f func(*settings, *agent.Agent, *core.Snapshot) error) error {
	set, err := sh.load(s)
	if err != nil {
		return err
	}
	opts := set.agentOptions(nil)
	opts.Home = "" // nothing is kept
	a, err := set.place.openAgent(ctx, opts)
	if err != nil {
		return err
	}
	defer a.Close()
	s.reportPlugins(a)
	snapshot, err := a.Tools().Snapshot(ctx)
	if err != nil {
		fmt.Fprintf(s.err, "agent: some tools are missing: %v\n", err)
	}
	return f(set, a, snapshot)
}

func noTool(name string, snapshot *core.Snapshot) error {
	return &usageError{fmt.Errorf("there is no tool %q; the tools are %s", name, strings.Join(snapshot.Names(), ", "))}
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
