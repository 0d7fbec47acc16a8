package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/core/model"
)

// Script is a parsed script. It is immutable and safe for concurrent use.
type Script struct {
	file  string
	name  string
	turns []turn
}

// turn is one answer, ready to be played.
type turn struct {
	number    int // from 1
	line      int // in the file, 0 if unknown
	when      *condition
	reasoning string
	text      string
	calls     []call
	latency   time.Duration
	failure   *model.Error // with which the stream ends; nil for a complete one
	stop      model.StopReason
	usage     *model.Usage // nil = estimated
}

type call struct {
	name string
	args string // JSON, or any text of the script
}

// The format of the file. Messages name the types by nouns.
type (
	scriptYAML struct {
		Name    string        `yaml:"name"`
		Latency time.Duration `yaml:"latency"`
		Turns   []*turnYAML   `yaml:"turns"` // pointers, since the library drops a null
	}
	turnYAML struct {
		When      *whenYAML      `yaml:"when"`
		Reasoning string         `yaml:"reasoning"`
		Text      string         `yaml:"text"`
		Calls     []*callYAML    `yaml:"calls"`
		Latency   *time.Duration `yaml:"latency"`
		Error     *errorYAML     `yaml:"error"`
		Cut       bool           `yaml:"cut"`
		Stop      string         `yaml:"stop"`
		Usage     *usageYAML     `yaml:"usage"`
	}
	whenYAML struct {
		User    *string `yaml:"user"`
		Tool    string  `yaml:"tool"`
		Result  string  `yaml:"result"`
		IsError bool    `yaml:"isError"`
	}
	callYAML struct {
		Name string `yaml:"name"`
		Args any    `yaml:"args"`
	}
	errorYAML struct {
		Code         string `yaml:"code"`
		Status       int    `yaml:"status"`
		RetryAfterMs int    `yaml:"retryAfterMs"`
		Message      string `yaml:"message"`
	}
	usageYAML struct {
		Input       int `yaml:"input"`
		CachedInput int `yaml:"cachedInput"`
		CacheWrite  int `yaml:"cacheWrite"`
		Output      int `yaml:"output"`
		Reasoning   int `yaml:"reasoning"`
	}
)

// nouns returns the names of the file's types in messages.
func nouns() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[scriptYAML](): "a script",
		reflect.TypeFor[turnYAML]():   "a turn",
		reflect.TypeFor[whenYAML]():   `"when"`,
		reflect.TypeFor[callYAML]():   "a call",
		reflect.TypeFor[errorYAML]():  `"error"`,
		reflect.TypeFor[usageYAML]():  `"usage"`,
	}
}

// Parse reads a script. Errors contain the name of the file and the line. Unknown
// keys are errors.
func Parse(name string, data []byte) (*Script, error) {
	var in scriptYAML
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("script %s: %w", name, explain(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("script %s: expected a single YAML document", name)
	}
	switch {
	case in.Name == "":
		return nil, fmt.Errorf(`script %s: "name" is missing: set it to a name for the model`, name)
	case in.Latency < 0:
		return nil, fmt.Errorf(`script %s: "latency" is negative`, name)
	case len(in.Turns) == 0:
		return nil, fmt.Errorf(`script %s: "turns" is missing or empty`, name)
	}
	s := &Script{file: name, name: in.Name, turns: make([]turn, len(in.Turns))}
	lines := turnLines(data)
	for i, ty := range in.Turns {
		t, err := ty.build(in.Latency)
		t.number = i + 1
		if i < len(lines) {
			t.line = lines[i]
		}
		if err != nil {
			return nil, fmt.Errorf("script %s: %s: %w", name, t, err)
		}
		s.turns[i] = t
	}
	return s, nil
}

// String names the turn in messages.
func (t turn) String() string {
	if t.line == 0 {
		return fmt.Sprintf("turn %d", t.number)
	}
	return fmt.Sprintf("turn %d (line %d)", t.number, t.line)
}

// explain rewrites an error of the YAML library in the terms of the format.
func explain(err error) error {
	var te *yaml.TypeError
	if errors.Is(err, io.EOF) {
		return errors.New(`the file is empty: a script has a "name" and "turns"`)
	}
	if !errors.As(err, &te) {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	msgs := slices.Clone(te.Errors)
	for i, msg := range msgs {
		for t, noun := range nouns() {
			where, ok := strings.CutSuffix(msg, " not found in type "+t.String())
			if line, key, found := strings.Cut(where, ": field "); ok && found {
				msgs[i] = fmt.Sprintf("%s: unknown key %q: %s has %s", line, key, noun, strings.Join(keys(t), ", "))
				break
			}
			msgs[i] = strings.ReplaceAll(msgs[i], t.String(), noun)
		}
	}
	return errors.New(strings.Join(msgs, "; "))
}

func keys(t reflect.Type) []string {
	out := make([]string, t.NumField())
	for i := range out {
		out[i] = t.Field(i).Tag.Get("yaml")
	}
	return out
}

// turnLines returns the line of each turn.
func turnLines(data []byte) []int {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "turns" {
			continue
		}
		var lines []int
		for _, n := range root.Content[i+1].Content {
			lines = append(lines, n.Line)
		}
		return lines
	}
	return nil
}

// build checks and converts a turn. Variables are not yet replaced.
func (in *turnYAML) build(latency time.Duration) (turn, error) {
	if in == nil {
		in = &turnYAML{}
	}
	t := turn{reasoning: in.Reasoning, text: in.Text, latency: latency, stop: model.StopReason(in.Stop)}
	if in.Latency != nil {
		t.latency = *in.Latency
	}
	switch {
	case t.latency < 0:
		return t, errors.New(`"latency" is negative`)
	case in.Text == "" && in.Reasoning == "" && len(in.Calls) == 0 && in.Error == nil && !in.Cut && in.Stop == "":
		return t, errors.New("it is empty: add text, reasoning, calls, error, cut or stop")
	case in.Error != nil && in.Cut:
		return t, errors.New(`"error" and "cut" exclude each other`)
	case (in.Error != nil || in.Cut) && (in.Stop != "" || in.Usage != nil):
		return t, errors.New(`"stop" and "usage" have no effect with "error" or "cut": remove them`)
	}
	var err error
	if t.when, err = in.When.build(); err != nil {
		return t, err
	}
	for i, c := range in.Calls {
		args, err := c.build()
		if err != nil {
			return t, fmt.Errorf("call %d: %w", i+1, err)
		}
		t.calls = append(t.calls, call{c.Name, args})
	}
	if t.stop, err = in.stopReason(); err != nil {
		return t, err
	}
	if t.usage, err = in.Usage.build(); err != nil {
		return t, err
	}
	if in.Cut {
		t.failure = &model.Error{Code: model.CodeNetwork, Provider: providerName, Message: "the script cuts the stream off here", Err: io.ErrUnexpectedEOF}
		return t, nil
	}
	t.failure, err = in.Error.build()
	return t, err
}

// build returns the arguments as JSON. A string is left unchanged: it need not be
// JSON.
func (in *callYAML) build() (string, error) {
	if in == nil || in.Name == "" {
		return "", errors.New(`"name" is missing`)
	}
	switch args := in.Args.(type) {
	case nil:
		return "{}", nil
	case string:
		return args, nil
	case map[string]any:
		out, err := jsonText(args)
		if err != nil {
			return "", fmt.Errorf(`"args" cannot be written as JSON: %w`, err)
		}
		return out, nil
	}
	return "", fmt.Errorf(`"args" must be a mapping with names as keys, or a string of raw JSON, not %T`, in.Args)
}

func (in *turnYAML) stopReason() (model.StopReason, error) {
	known := []model.StopReason{
		model.StopEnd, model.StopToolCalls, model.StopMaxTokens, model.StopContentFilter, model.StopRefusal, model.StopOther,
	}
	switch stop := model.StopReason(in.Stop); {
	case stop == "" && len(in.Calls) > 0:
		return model.StopToolCalls, nil
	case stop == "":
		return model.StopEnd, nil
	case slices.Contains(known, stop):
		return stop, nil
	}
	return "", fmt.Errorf(`unknown "stop" %q: expected one of %q`, in.Stop, known)
}

func (in *usageYAML) build() (*model.Usage, error) {
	if in == nil {
		return nil, nil
	}
	if min(in.Input, in.CachedInput, in.CacheWrite, in.Output, in.Reasoning) < 0 {
		return nil, errors.New(`"usage" has a negative number`)
	}
	return &model.Usage{
		Input: in.Input, CachedInput: in.CachedInput, CacheWrite: in.CacheWrite, Output: in.Output, Reasoning: in.Reasoning,
	}, nil
}

func (in *errorYAML) build() (*model.Error, error) {
	if in == nil {
		return nil, nil
	}
	known := []model.ErrorCode{
		model.CodeNotConfigured, model.CodeNotSupported, model.CodeAuthentication, model.CodeRateLimited, model.CodeModelNotFound,
		model.CodeContextLength, model.CodeInvalidRequest, model.CodeNetwork, model.CodeTimeout, model.CodeInvalidResponse, model.CodeUnknown,
	}
	if !slices.Contains(known, model.ErrorCode(in.Code)) {
		return nil, fmt.Errorf(`unknown "code" %q of "error": expected one of %q`, in.Code, known)
	}
	if in.Status < 0 || in.RetryAfterMs < 0 {
		return nil, errors.New(`"error" has a negative number`)
	}
	return &model.Error{
		Code: model.ErrorCode(in.Code), Provider: providerName, Status: in.Status,
		RetryAfter: time.Duration(in.RetryAfterMs) * time.Millisecond, Message: in.Message,
	}, nil
}

func (in *whenYAML) build() (*condition, error) {
	switch {
	case in == nil:
		return nil, nil
	case in.User == nil && in.Tool == "":
		return nil, errors.New(`"when" needs "user" or "tool"`)
	case in.User != nil && (in.Tool != "" || in.Result != "" || in.IsError):
		return nil, errors.New(`"when" has both "user" and a result: a message is only one of them`)
	}
	name, expr := "result", in.Result
	if in.User != nil {
		name, expr = "user", *in.User
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf(`"when": %q: %w`, name, err)
	}
	return &condition{tool: in.Tool, text: re, isError: in.IsError}, nil
}

// jsonText encodes v without escapes for HTML.
func jsonText(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
