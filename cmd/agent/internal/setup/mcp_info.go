package setup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/schema/adapt"
	"github.com/seed-009c0928/agent/mcp"
)

// ServerInfo is the JSON of an MCP server.
type ServerInfo struct {
	Name      string       `json:"name"`
	Scope     string       `json:"scope"`
	Transport string       `json:"transport"`
	Target    string       `json:"target"` // the command line or the URL
	Status    string       `json:"status"` // ready, unknown, disabled, untrusted, broken
	Problem   string       `json:"problem,omitempty"`
	Tools     int          `json:"tools"`
	Adapted   int          `json:"adapted"`           // tools whose schema the model's service gets in another form
	Blocked   []string     `json:"blocked,omitempty"` // tools whose definition has changed
	Hash      string       `json:"hash"`
	Config    *mcp.Server  `json:"config,omitempty"`
	Server    *mcp.Info    `json:"server,omitempty"`
	Offered   []serverTool `json:"offered,omitempty"`
	Prompts   []string     `json:"prompts,omitempty"`
	Resources int          `json:"resources"`
	Left      []string     `json:"left,omitempty"` // why tools were left out
}

// serverTool is a tool as its server describes it.
type serverTool struct {
	Name        string `json:"name"`  // the server's name for it
	Model       string `json:"model"` // the model's name for it
	Description string `json:"description"`
	// Adapted is why the model's service gets its schema in another form.
	Adapted []string `json:"adapted,omitempty"`
}

// ToolCount returns the number of tools, and of those that are adapted or left out.
func (i ServerInfo) ToolCount() string {
	text := display.Plural(i.Tools, "tool")
	if i.Adapted > 0 {
		text += fmt.Sprintf(", %d adapted", i.Adapted)
	}
	if n := len(i.Left); n > 0 {
		text += fmt.Sprintf(", %d left out", n)
	}
	return text
}

// Dialect returns the form of schemas that the service of the default provider
// accepts.
func (s *Setup) Dialect() adapt.Dialect {
	k, err := s.Kind()
	if err != nil {
		return adapt.Chat
	}
	api := map[string]string{"openai": "responses", "anthropic": "anthropic", "gemini": "gemini"}[k.Name]
	if n := s.Settings.Providers.Named[k.Name]; n != nil {
		api = n.API
	}
	switch api {
	case "responses":
		return adapt.OpenAI
	case "anthropic":
		return adapt.Anthropic
	case "gemini":
		return adapt.Gemini
	}
	return adapt.Chat
}

// ServerInfoOf returns what lists show of a server, with its tools as a service
// gets them.
func ServerInfoOf(st mcp.Status, d adapt.Dialect) ServerInfo {
	i := ServerInfo{
		Name: st.Name, Scope: st.Source, Transport: st.Server.Transport(), Target: st.Server.Describe(), Hash: st.Hash,
		Tools: len(st.Tools), Blocked: st.Blocked, Resources: st.Resources, Status: "unknown", Left: st.Skipped,
	}
	for _, t := range st.Tools {
		if len(t.Adapted(d)) > 0 {
			i.Adapted++
		}
	}
	switch {
	case st.Server.Disabled:
		i.Status = "disabled"
	case errors.Is(st.Problem, ErrUntrustedServer):
		i.Status, i.Problem = "untrusted", st.Problem.Error()
	case st.Problem != nil:
		i.Status, i.Problem = "broken", st.Problem.Error()
	case st.Known:
		i.Status = "ready"
	}
	return i
}

// Details adds the configuration and what the server offers.
func (i ServerInfo) Details(st mcp.Status, d adapt.Dialect) ServerInfo {
	shown := st.Server.Redacted()
	i.Config = &shown
	if st.Known {
		i.Server = &st.Info
	}
	for _, t := range st.Tools {
		i.Offered = append(i.Offered, serverTool{t.Name, mcp.ToolName(st.Name, t.Name), t.Description, t.Adapted(d)})
	}
	for _, p := range st.Prompts {
		i.Prompts = append(i.Prompts, p.Name)
	}
	return i
}

// ServerState returns the state of a server in a session, in a word or two.
func ServerState(st mcp.Status) string {
	i := ServerInfoOf(st, "")
	switch {
	case i.Status != "ready" && i.Status != "unknown":
		return i.Status
	case st.Running && st.PID > 0:
		return fmt.Sprintf("running (pid %d)", st.PID)
	case st.Running:
		return "connected"
	case errors.Is(st.Err, mcp.ErrSignIn):
		return "sign-in required"
	case st.Err != nil:
		return "failed"
	}
	return i.Status
}

// ServerNotes returns what is wrong with a server.
func ServerNotes(st mcp.Status) []string {
	var notes []string
	if st.Problem != nil {
		notes = append(notes, st.Problem.Error())
	}
	if st.Err != nil {
		notes = append(notes, display.OneLine(st.Err.Error(), 300))
	}
	if len(st.Blocked) > 0 {
		notes = append(notes, "changed and blocked: "+strings.Join(st.Blocked, ", ")+". A call asks you to approve the change.")
	}
	for _, why := range st.Skipped {
		notes = append(notes, display.OneLine(why, 300))
	}
	return notes
}
