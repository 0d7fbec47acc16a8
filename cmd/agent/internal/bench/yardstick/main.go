// Command yardstick is a minimal agent: it sends the conversation to an
// OpenAI-compatible endpoint, runs the streamed tool calls and sends their
// results, until the model answers with text. It has no permissions, log, events
// or recovery; package bench compares the agent with it to separate the agent's
// cost from the machine's.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// outputLimit limits the output of a command that the model gets.
const outputLimit = 30_000

type message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chunk is one event of the answer.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			ToolCalls []call `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

const tools = `[
{"type":"function","function":{"name":"shell","description":"Run a shell command.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
{"type":"function","function":{"name":"read_file","description":"Read a text file.","parameters":{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}}}
]`

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println("yardstick")
		return
	}
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: yardstick ENDPOINT MODEL PROMPT")
		os.Exit(2)
	}
	if err := work(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "yardstick:", err)
		os.Exit(1)
	}
}

func work(endpoint, model, prompt string) error {
	conversation := []message{
		{Role: "system", Content: "You do what the user asks with the tools you have."},
		{Role: "user", Content: prompt},
	}
	for {
		answer, err := ask(endpoint, model, conversation)
		if err != nil {
			return err
		}
		if len(answer.ToolCalls) == 0 {
			return nil
		}
		conversation = append(conversation, answer)
		for _, c := range answer.ToolCalls {
			result, err := perform(c)
			if err != nil {
				return err
			}
			conversation = append(conversation, message{Role: "tool", ToolCallID: c.ID, Content: result})
		}
	}
}

// ask sends the conversation and returns the answer, printing text as it
// arrives. Each tool call must be complete in one event.
func ask(endpoint, model string, conversation []message) (message, error) {
	body, err := json.Marshal(map[string]any{
		"model": model, "stream": true, "messages": conversation, "tools": json.RawMessage(tools),
	})
	if err != nil {
		return message{}, err
	}
	resp, err := http.Post(endpoint+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return message{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return message{}, fmt.Errorf("the model answered %s", resp.Status)
	}
	answer := message{Role: "assistant"}
	var text strings.Builder
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return message{}, err
		}
		for _, choice := range c.Choices {
			os.Stdout.WriteString(choice.Delta.Content)
			text.WriteString(choice.Delta.Content)
			answer.ToolCalls = append(answer.ToolCalls, choice.Delta.ToolCalls...)
		}
	}
	answer.Content = text.String()
	return answer, lines.Err()
}

func perform(c call) (string, error) {
	var args struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
	}
	if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil {
		return "", err
	}
	switch c.Function.Name {
	case "read_file":
		return numbered(args.FilePath)
	case "shell":
	default: // of a plugin
		return c.Function.Arguments, nil
	}
	out, err := exec.Command("sh", "-c", args.Command).CombinedOutput()
	if len(out) > outputLimit {
		out = append(out[:outputLimit/2:outputLimit/2], out[len(out)-outputLimit/2:]...)
	}
	return string(out), err
}

// numbered returns the lines of a file with their numbers.
func numbered(name string) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		out.WriteString(strconv.Itoa(n))
		out.WriteString(" | ")
		out.WriteString(line)
	}
	return out.String(), nil
}
