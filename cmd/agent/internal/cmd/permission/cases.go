package permission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/permissions"
)

// policyCase is a call in a table, with the decision that the policy should
// make.
type policyCase struct {
	Tool     string         `json:"tool" yaml:"tool"`       // "shell" if Command is set
	Args     map[string]any `json:"args" yaml:"args"`       // of the tool
	Command  string         `json:"command" yaml:"command"` // instead of Args, for shell
	Mode     string         `json:"mode" yaml:"mode"`       // "" is the current mode
	Headless bool           `json:"headless" yaml:"headless"`
	Want     string         `json:"want" yaml:"want"` // allow, ask or deny
	Rule     string         `json:"rule" yaml:"rule"` // that must decide; "" is any
	Why      string         `json:"why" yaml:"why"`   // a comment

	line int
}

// maxCases is the greatest size of a table, in bytes.
const maxCases = 4 << 20

// readCases reads the table at path. Errors call it name.
func readCases(name, path string) ([]policyCase, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &cmdutil.UsageError{Err: err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCases+1))
	if err == nil && len(data) > maxCases {
		err = fmt.Errorf("the file is larger than %d MiB", maxCases>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var cases []policyCase
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		cases, err = jsonCases(name, data)
	} else {
		cases, err = yamlCases(name, data)
	}
	if err != nil {
		return nil, &cmdutil.UsageError{Err: err}
	}
	if len(cases) == 0 {
		return nil, cmdutil.Usagef("%s has no cases", name)
	}
	for i := range cases {
		if err := cases[i].check(); err != nil {
			return nil, cmdutil.Usagef("%s:%d: %w", name, cases[i].line, err)
		}
	}
	return cases, nil
}

// jsonCases reads one object per line.
func jsonCases(name string, data []byte) ([]policyCase, error) {
	var cases []policyCase
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		c := policyCase{line: i + 1}
		if err := jsonpos.Decode(name, line, &c); err != nil {
			if at := (*jsonpos.Error)(nil); errors.As(err, &at) {
				at.Line += i
			}
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func yamlCases(name string, data []byte) ([]policyCase, error) {
	var nodes []yaml.Node
	if err := yaml.Unmarshal(data, &nodes); err != nil {
		return nil, fmt.Errorf("%s: expected a list of cases, such as \"- {command: git push, want: ask}\": %w", name, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var cases []policyCase
	if err := decoder.Decode(&cases); err != nil && !errors.Is(err, io.EOF) {
		text := strings.Join(strings.Fields(err.Error()), " ")
		text = strings.ReplaceAll(text, fmt.Sprintf(" not found in type %T", policyCase{}), " is unknown")
		return nil, fmt.Errorf("%s: %s", name, text)
	}
	for i := range cases {
		cases[i].line = nodes[i].Line
	}
	return cases, nil
}

func (c *policyCase) check() error {
	if c.Command != "" {
		if c.Tool != "" && c.Tool != "shell" || c.Args != nil {
			return errors.New("command is short for tool shell with its arguments: remove tool and args")
		}
		c.Tool, c.Args = "shell", map[string]any{"command": c.Command}
	}
	if c.Mode != "" {
		if _, err := permissions.ParseMode(c.Mode); err != nil {
			return err
		}
	}
	switch {
	case c.Tool == "":
		return errors.New("tool is missing: a case needs tool and args, or command")
	case c.Want != "allow" && c.Want != "ask" && c.Want != "deny":
		return fmt.Errorf("want is %q: expected allow, ask or deny", c.Want)
	case c.Headless && c.Want == "ask":
		return errors.New("want is ask: with headless it is allow or deny")
	}
	return nil
}
