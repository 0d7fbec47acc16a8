package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// taskName is the tool that runs a task.
const taskName = "run_task"

// taskArgs are the arguments of run_task.
type taskArgs struct {
	Prompt  string `json:"prompt"`
	Session string `json:"session"`
}

// taskReport is the structured result of run_task.
type taskReport struct {
	Session string   `json:"session"`
	Outcome string   `json:"outcome"`
	Text    string   `json:"text"`
	Rounds  int      `json:"rounds"`
	Tokens  int      `json:"tokens"`
	Denied  []string `json:"denied"`
}

func taskTool() mcp.Tool {
	t := mcp.NewToolWithRawSchema(taskName,
		"Runs a task with a coding agent in this server's workspace. The agent works autonomously, with its own model and tools, and reports the result. "+
			"Progress notifications tell what it is doing. It cannot see your conversation: put all necessary context into the prompt.",
		json.RawMessage(`{"type": "object", "properties": {
			"prompt": {"type": "string", "description": "The task, with all necessary context."},
			"session": {"type": "string", "description": "ID of a session from an earlier result, to continue it."}
		}, "required": ["prompt"], "additionalProperties": false}`))
	t.RawOutputSchema = json.RawMessage(`{"type": "object", "properties": {
		"session": {"type": "string", "description": "ID of the session, to continue it."},
		"outcome": {"type": "string", "description": "Why the agent stopped: done, or what prevented it."},
		"text": {"type": "string", "description": "The agent's final answer."},
		"rounds": {"type": "integer", "description": "Rounds of tool calls."},
		"tokens": {"type": "integer", "description": "Tokens used."},
		"denied": {"type": "array", "items": {"type": "string"}, "description": "Tools whose calls were denied."}
	}, "required": ["session", "outcome", "text", "rounds", "tokens", "denied"]}`)
	return t
}

// runTask implements runner: a session with the agent's own model.
func (s *Server) runTask(c *call) *mcp.CallToolResult {
	var args taskArgs
	if err := json.Unmarshal(c.args, &args); err != nil || strings.TrimSpace(args.Prompt) == "" {
		return failure("Invalid arguments: expected {\"prompt\": TEXT}, with \"session\": ID to continue an earlier session.")
	}
	session, err := s.opts.Open(c.ctx, SessionOptions{Asker: c, Resume: args.Session})
	if err != nil {
		return failure(fmt.Sprintf("Cannot open a session: %v", err))
	}
	var reading sync.WaitGroup
	reading.Go(func() { reportEvents(c, session) })
	out, err := session.Submit(c.ctx, core.TextInput(args.Prompt))
	if closed := session.Close(); err == nil { // also ends the events
		err = closed
	}
	reading.Wait()
	report := taskReport{Session: session.ID(), Outcome: string(out.Stop), Text: out.Text, Rounds: out.Rounds, Tokens: out.Usage.Total(), Denied: []string{}}
	for _, d := range out.Denied {
		report.Denied = append(report.Denied, d.Tool)
	}
	text := out.Text
	if err != nil {
		text = fmt.Sprintf("The task failed: %v", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}, StructuredContent: report, IsError: err != nil}
}

// reportEvents reports the session's steps as progress without a total: their
// number and the latest one.
func reportEvents(c *call, session Session) {
	step := 0.0
	for e, err := range session.Events(context.WithoutCancel(c.ctx), 0) {
		if err != nil {
			return
		}
		text := ""
		switch b := e.Body.(type) {
		case event.ToolUse:
			text = b.Name + " " + oneLine(b.Args)
		case event.Message:
			text = oneLine(b.Content.Text())
		case event.ToolProgress:
			text = oneLine(b.Message)
		case event.Warning:
			text = oneLine(b.Message)
		}
		if text != "" {
			step++
			c.report(core.Progress{Done: step, Message: text})
		}
	}
}

// oneLine returns the beginning of a text in one line, for display.
func oneLine(text string) string {
	const longest = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}
