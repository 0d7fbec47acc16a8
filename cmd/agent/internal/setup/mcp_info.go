package setup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/mcp"
)

// ServerInfo is a server as lists show it.
type ServerInfo struct {
	Name      string      `json:"name"`
	Scope     string      `json:"scope"`
	Transport string      `json:"transport"`
	Target    string      `json:"target"` // the command line or the address
	Status    string      `json:"status"` // ready, unknown, disabled, untrusted, broken
	Problem   string      `json:"problem,omitempty"`
	Tools     int         `json:"tools"`
	Blocked   []string    `json:"blocked,omitempty"` // tools whose definition has changed
	Hash      string      `json:"hash"`
	Config    *mcp.Server `json:"config,omitempty"`
	Server    *mcp.Info   `json:"server,omitempty"`
	Offered   []toolWords `json:"offered,omitempty"`
	Prompts   []string    `json:"prompts,omitempty"`
	Resources int         `json:"resources"`
	Left      []string    `json:"left,omitempty"` // why tools were left out
}

// toolWords is a tool and what its server says of it.
type toolWords struct {
	Name        string `json:"name"`  // the server's
	Model       string `json:"model"` // that the model knows it by
	Description string `json:"description"`
}

func ServerInfoOf(st mcp.Status) ServerInfo {
	i := ServerInfo{
		Name: st.Name, Scope: st.Source, Transport: st.Server.Transport(), Target: st.Server.Describe(), Hash: st.Hash,
		Tools: len(st.Tools), Blocked: st.Blocked, Resources: st.Resources, Status: "unknown",
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

// Details adds what get and test show.
func (i ServerInfo) Details(st mcp.Status) ServerInfo {
	shown := st.Server.Redacted()
	i.Config, i.Left = &shown, st.Left
	if st.Known {
		i.Server = &st.Info
	}
	for _, t := range st.Tools {
		i.Offered = append(i.Offered, toolWords{t.Name, mcp.ToolName(st.Name, t.Name), t.Description})
	}
	for _, p := range st.Prompts {
		i.Prompts = append(i.Prompts, p.Name)
	}
	return i
}

// ServerState is how things stand with a server, in a word or two.
func ServerState(st mcp.Status) string {
	i := ServerInfoOf(st)
	switch {
	case i.Status != "ready" && i.Status != "unknown":
		return i.Status
	case st.Running && st.PID > 0:
		return fmt.Sprintf("runs (pid %d)", st.PID)
	case st.Running:
		return "connected"
	case st.Err != nil:
		return "failed"
	}
	return i.Status
}

// ServerNotes says what is wrong with a server.
func ServerNotes(st mcp.Status) []string {
	var notes []string
	if st.Problem != nil {
		notes = append(notes, st.Problem.Error())
	}
	if st.Err != nil {
		notes = append(notes, display.OneLine(st.Err.Error(), 300))
	}
	if len(st.Blocked) > 0 {
		notes = append(notes, "changed and blocked: "+strings.Join(st.Blocked, ", ")+". You are asked when one of them is used.")
	}
	for _, why := range st.Left {
		notes = append(notes, display.OneLine(why, 300))
	}
	return notes
}
