package tool

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("tools", "List the tools, show one, call one", newToolsList(s), newToolsShow(s), newToolsCall(s))
}

func newToolsList(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use: "list", Short: "List the tools of the profile in force with their source, scopes and cost in tokens", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.WithTools(cmd.Context(), s, sh, func(set *setup.Setup, a *agent.Agent, _ *core.Snapshot) error {
				p, err := set.Profile(set.Settings.Providers.Default, set.Loaded.Model())
				if err != nil {
					return err
				}
				snapshot, err := a.ToolsFor(p).Snapshot(cmd.Context())
				if snapshot == nil {
					return err
				}
				infos := []setup.ToolInfo{}
				for _, e := range snapshot.Entries() {
					info := setup.ToolInfoOf(e)
					info.Schema = nil
					infos = append(infos, info)
				}
				if asJSON {
					return cmdutil.WriteJSON(s.Out, infos)
				}
				return printTools(s.Out, infos)
			})
		},
	}
	sh.Register(cmd.Flags(), setup.PolicyFlags|setup.ProviderFlags|setup.ProfileFlag|setup.DebugFlag)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printTools(out io.Writer, infos []setup.ToolInfo) error {
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
	fmt.Fprintf(w, "%s\t\t\t%d\t\n", cmdutil.Plural(len(infos), "tool"), total)
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

func newToolsShow(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a tool as the model sees it", Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return setup.WithTools(cmd.Context(), s, sh, func(_ *setup.Setup, _ *agent.Agent, snapshot *core.Snapshot) error {
				e, ok := snapshot.Lookup(args[0])
				if !ok {
					return setup.NoTool(args[0], snapshot)
				}
				info := setup.ToolInfoOf(e)
				if asJSON {
					return cmdutil.WriteJSON(s.Out, info)
				}
				fmt.Fprintf(s.Out, "%s (%s), about %d tokens\n\n%s\n\n", info.Name, info.Source, info.Tokens, strings.TrimSpace(info.Description))
				return cmdutil.WriteJSON(s.Out, info.Schema)
			})
		},
	}
	sh.Register(cmd.Flags(), setup.PolicyFlags|setup.ProviderFlags|setup.ProfileFlag|setup.DebugFlag)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newToolsCall(s *cmdutil.IO) *cobra.Command {
	sh, asJSON, args := &setup.Flags{}, false, ""
	cmd := &cobra.Command{
		Use:   "call NAME",
		Short: "Call a tool through the whole pipeline, permissions included",
		Long: "call runs a tool as a model would have it run and prints what the model would get.\n" +
			"What would be asked is denied; --allow grants it. The exit code is 1 if the result is an error.",
		Example: "  agent tools call read_file --args '{\"file_path\": \"README.md\"}'\n" +
			"  agent tools call shell --args @args.json --allow 'shell(go test *)'",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			text, err := cmdutil.ToolArguments(args)
			if err != nil {
				return err
			}
			return setup.WithTools(cmd.Context(), s, sh, func(set *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
				if _, ok := snapshot.Lookup(names[0]); !ok {
					return setup.NoTool(names[0], snapshot)
				}
				opts := agent.SessionOptions{Ephemeral: true}
				if err := set.SessionOptions(&opts); err != nil {
					return err
				}
				opts.Profile = core.Profile{Name: "all"} // no model is asked, and every tool is there
				return callTool(cmd.Context(), s, a, opts, model.ToolCall{ID: "call", Name: names[0], Args: text}, asJSON)
			})
		},
	}
	sh.Register(cmd.Flags(), setup.PolicyFlags|setup.ProviderFlags|setup.ProfileFlag|setup.DebugFlag)
	cmd.Flags().StringVar(&args, "args", "{}", "its arguments as `JSON`, or @FILE")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the tool_result event as JSON")
	return cmd
}

// callTool runs one call in a session whose model asks for just that.
func callTool(ctx context.Context, s *cmdutil.IO, a *agent.Agent, opts agent.SessionOptions, call model.ToolCall, asJSON bool) error {
	opts.Provider = &oneCall{call: call}
	session, err := a.NewSession(ctx, opts)
	if err != nil {
		return err
	}
	defer session.Close()
	watched, stop := cmdutil.Interrupts(ctx, s.Err, func() { session.Cancel("interrupted by Ctrl-C") })
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

func printResult(s *cmdutil.IO, e event.Event, res event.ToolResult, asJSON bool) error {
	if asJSON {
		if err := cmdutil.WriteJSON(s.Out, e); err != nil {
			return err
		}
	} else {
		for _, p := range res.Content {
			switch p := p.(type) {
			case model.Text:
				fmt.Fprintln(s.Out, strings.TrimRight(p.Text, "\n"))
			case model.Image:
				fmt.Fprintf(s.Out, "[image %s, %d bytes]\n", p.MediaType, max(p.Bytes, len(p.Data)))
			}
		}
	}
	if res.IsError {
		return &cmdutil.StatusError{Code: cmdutil.ExitError}
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
