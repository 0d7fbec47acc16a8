package permissions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/seed-009c0928/agent/core"
)

// When is a rule with a condition instead of a pattern, for what patterns cannot
// express:
//
//	{"if": "program == 'git' && arg(1) == 'push' && '--force' in argv", "then": "deny",
//	 "why": "no force pushes", "match": ["git push --force"], "notMatch": ["git push"]}
//
// Conditions are written in the language of github.com/expr-lang/expr, with the
// variables that the package documentation lists.
type When struct {
	// If is the condition, a boolean expression.
	If string `json:"if"`
	// Then is "allow", "ask" or "deny".
	Then List `json:"then"`
	// Why is appended to the reason of the permission request or denial.
	Why string `json:"why,omitempty"`
	// Match and NotMatch are examples that the condition must and must not match:
	// command lines, or SCOPE(resource) such as fs-write(/etc/hosts). They are
	// checked when the rules are loaded.
	Match    []string `json:"match,omitempty"`
	NotMatch []string `json:"notMatch,omitempty"`
}

// conditionEnv are the variables of a condition.
type conditionEnv struct {
	Scope     string   `expr:"scope"`
	Tool      string   `expr:"tool"`
	Source    string   `expr:"source"`
	Agent     string   `expr:"agent"`
	Mode      string   `expr:"mode"`
	Dir       string   `expr:"dir"`
	Resource  string   `expr:"resource"`
	Path      string   `expr:"path"`
	Inside    bool     `expr:"inside"`
	Recursive bool     `expr:"recursive"`
	Command   string   `expr:"command"`
	Program   string   `expr:"program"`
	Argv      []string `expr:"argv"`
	// Arg is a word of argv, or empty beyond its end. Indexing argv would fail
	// there, and the access be denied.
	Arg    func(int) string `expr:"arg"`
	Host   string           `expr:"host"`
	Port   string           `expr:"port"`
	beyond bool             // Arg was called beyond the end
	Owner  string           `expr:"owner"`
	Name   string           `expr:"name"`
}

// The limits of a condition. With the functions that it may call they bound the
// cost of an evaluation by its length times that of a command.
const (
	maxCondition      = 4096 // bytes
	maxConditionNodes = 200
	conditionMemory   = 10_000 // elements of lists that it creates
)

// conditionFunctions are the functions that conditions can call. None returns
// more than it is given, and none depends on the time.
var conditionFunctions = [...]string{
	"all", "any", "none", "one", "count", "filter", "find",
	"len", "trim", "trimPrefix", "trimSuffix", "upper", "lower", "split",
	"indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "arg",
}

// condition is a compiled condition. It is safe for concurrent use.
type condition struct {
	program *vm.Program
	scopes  []core.Scope // the only ones it can match; nil = any
	text    bool         // it uses the text of commands, or argv as a whole
	paths   bool         // it uses paths
}

// compileCondition compiles a condition. The column of an error is in characters,
// from 1.
func compileCondition(text string) (c *condition, column int, err error) {
	if len(text) > maxCondition {
		return nil, 1, fmt.Errorf("the condition is longer than %d bytes: split it", maxCondition)
	}
	tree, err := parser.ParseWithConfig(text, conditionConfig())
	if err != nil {
		return nil, columnOf(err), errors.New(messageOf(err))
	}
	limits := &conditionLimits{}
	ast.Walk(&tree.Node, limits)
	limits.predicates(tree.Node, false)
	if limits.err != nil {
		return nil, limits.at + 1, limits.err
	}
	options := []expr.Option{expr.Env(conditionEnv{}), expr.AsBool(), expr.DisableAllBuiltins(), expr.MaxNodes(maxConditionNodes)}
	for _, name := range conditionFunctions {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		return nil, columnOf(err), errors.New(messageOf(err))
	}
	return &condition{program: program, scopes: onlyScopes(tree.Node), text: limits.text || limits.lists > limits.indexes, paths: limits.paths}, 0, nil
}

func conditionConfig() *conf.Config {
	c := conf.CreateNew()
	c.MaxNodes = maxConditionNodes
	return c
}

func columnOf(err error) int {
	if at := (*file.Error)(nil); errors.As(err, &at) {
		return at.Column + 1
	}
	return 1
}

// messageOf is an error of the language without the excerpt of the source.
func messageOf(err error) string {
	if at := (*file.Error)(nil); errors.As(err, &at) {
		return at.Message
	}
	return err.Error()
}

// conditionLimits checks a condition for what could make it expensive.
type conditionLimits struct {
	text, paths    bool
	lists, indexes int // uses of argv, and how many of them are argv[number]
	err            error
	at             int
}

// Visit implements [ast.Visitor].
func (l *conditionLimits) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		l.fail(n, "a condition cannot declare variables: inline them")
	case *ast.BuiltinNode:
		l.call(n, n.Name)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			l.call(n, name.Value)
		} else {
			l.fail(n, "only functions can be called: %s", strings.Join(conditionFunctions[:], ", "))
		}
	case *ast.BinaryNode:
		if _, constant := n.Right.(*ast.StringNode); n.Operator == "matches" && !constant {
			l.fail(n.Right, "the pattern of matches must be a string literal")
		}
		if n.Operator == ".." || n.Operator == "**" || n.Operator == "^" {
			l.fail(n, "a condition cannot use %s", n.Operator)
		}
	case *ast.MemberNode:
		list, isName := n.Node.(*ast.IdentifierNode)
		if _, isNumber := n.Property.(*ast.IntegerNode); isName && isNumber && list.Value == "argv" {
			l.indexes++
		}
	case *ast.IdentifierNode:
		switch n.Value {
		case "$env":
			l.fail(n, "a condition cannot use $env: use the variables by name")
		case "argv":
			l.lists++
		case "command", "resource":
			l.text = true
		}
		switch n.Value {
		case "path", "resource":
			l.paths = true
		}
	}
}

func (l *conditionLimits) call(n ast.Node, name string) {
	if !slices.Contains(conditionFunctions[:], name) {
		l.fail(n, "a condition cannot call %s; it can call %s", name, strings.Join(conditionFunctions[:], ", "))
	}
}

func (l *conditionLimits) fail(n ast.Node, format string, args ...any) {
	if l.err == nil {
		l.err, l.at = fmt.Errorf(format, args...), n.Location().From
	}
}

// predicates checks what is evaluated for each element of a list: it must not
// iterate over another list or search a long text.
func (l *conditionLimits) predicates(root ast.Node, inside bool) {
	ast.Walk(&root, predicateVisitor{l, inside})
}

type predicateVisitor struct {
	*conditionLimits
	inside bool
}

// Visit implements [ast.Visitor]. A walk visits the children of a node before the
// node itself, so that each predicate is checked separately.
func (v predicateVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		if v.inside {
			v.fail(n, "a list cannot be iterated within another iteration")
			return
		}
		v.predicates(n.Node, true)
	case *ast.IdentifierNode:
		if v.inside && (n.Value == "argv" || n.Value == "command" || n.Value == "resource") {
			v.fail(n, "%s cannot be used within an iteration: use # for the element", n.Value)
		}
	}
}

// onlyScopes returns the scopes that the condition starts by comparing with: it
// cannot match others. Nil means any.
func onlyScopes(n ast.Node) []core.Scope {
	b, ok := n.(*ast.BinaryNode)
	if !ok {
		return nil
	}
	switch b.Operator {
	case "and", "&&":
		return onlyScopes(b.Left)
	case "==":
		name, isName := b.Left.(*ast.IdentifierNode)
		value, isText := b.Right.(*ast.StringNode)
		if isName && isText && name.Value == "scope" {
			return []core.Scope{core.Scope(value.Value)}
		}
	}
	return nil
}

// holds evaluates the condition.
func (c *condition) holds(env *conditionEnv) (bool, error) {
	if c.scopes != nil && !slices.Contains(c.scopes, core.Scope(env.Scope)) {
		return false, nil
	}
	machine := vm.VM{MemoryBudget: conditionMemory}
	value, err := machine.Run(c.program, env)
	if err != nil {
		return false, errors.New(messageOf(err))
	}
	holds, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("the result %v is not a boolean", value)
	}
	return holds, nil
}

// env returns the variables of a condition for a subject.
func (p *Policy) env(s *subject) *conditionEnv {
	e := &conditionEnv{
		Scope: string(s.Scope), Tool: s.tool, Source: s.source, Agent: s.agent, Mode: string(p.mode), Dir: s.dir,
		Resource: s.Resource, Inside: s.Inside, Recursive: s.Recursive, Path: s.path,
	}
	e.Arg = func(i int) string {
		if i < 0 || i >= len(e.Argv) {
			e.beyond = true
			return ""
		}
		return e.Argv[i]
	}
	switch {
	case startsProgram(s.Scope):
		e.Command, e.Program, e.Argv = s.Resource, s.program, s.certain()
	case s.Scope == core.ScopeNetwork:
		e.Host, e.Port = splitHost(s.Resource)
	case s.Scope == core.ScopeMCP, s.Scope == core.ScopePlugin:
		e.Owner, e.Name, _ = strings.Cut(s.Resource, "/")
	}
	return e
}

// broken is a condition that failed on an access.
type broken struct {
	rule *rule
	err  error
}

// tryConditions evaluates all conditions on a subject. It returns one that
// fails: the access is then denied.
func (p *Policy) tryConditions(s *subject) *broken {
	if len(p.conditions) == 0 {
		return nil
	}
	env := p.env(s)
	s.holds = make([]bool, len(p.conditions))
	for i, r := range p.conditions {
		env.beyond = false
		holds, err := r.cond.holds(env)
		doubtful := s.doubtful(r.cond, err != nil || env.beyond)
		switch {
		case holds:
			s.holds[i] = r.list != ListAllow || !doubtful
		case doubtful: // too little is known to decide
			if s.maybe == nil && r.list != ListAllow {
				s.maybe = r
			}
		case err != nil:
			return &broken{r, err}
		}
	}
	return nil
}

// doubtful reports whether a condition uses what is not known of the subject:
// words only known at run time, or the content of a tree. Beyond says that it
// used more words than are known.
func (s *subject) doubtful(c *condition, beyond bool) bool {
	if c.scopes != nil && !slices.Contains(c.scopes, s.Scope) {
		return false
	}
	if startsProgram(s.Scope) {
		return (c.text || beyond) && (s.vague || s.sure < len(s.Argv) || len(s.Argv) == 0)
	}
	return c.paths && s.Scope.IsFile() && (s.vague || s.Recursive && !s.carved)
}

// checkExamples checks the examples of a condition.
func (p *Policy) checkExamples(r *rule, w *When) error {
	for _, list := range []struct {
		name     string
		examples []string
		want     bool
	}{{"match", w.Match, true}, {"notMatch", w.NotMatch, false}} {
		for i, example := range list.examples {
			subjects, err := p.example(example)
			if err != nil {
				return fmt.Errorf("%s %d, %s: %w", list.name, i+1, show(example), err)
			}
			found := false
			for j := range subjects {
				holds, err := r.cond.holds(p.env(&subjects[j]))
				if err != nil {
					return fmt.Errorf("%s %d, %s: the condition fails on it: %w", list.name, i+1, show(example), err)
				}
				found = found || holds
			}
			if found != list.want {
				holds := map[bool]string{true: "matches", false: "does not match"}
				return fmt.Errorf("%s %d, %s: the condition %s it: fix the condition or the example", list.name, i+1, show(example), holds[found])
			}
		}
	}
	return nil
}

// example returns the access or the commands of an example.
func (p *Policy) example(text string) ([]subject, error) {
	if parsed, err := ParseRule(text); err == nil {
		scope, ok := scopeOf(parsed.Name)
		if ok && strings.Contains(text, "(") {
			a := core.Access{Scope: scope, Resource: parsed.Pattern}
			if scope.IsFile() {
				a.Resource = p.absolute(parsed.Pattern)
				a.Inside = slices.ContainsFunc(p.roots, func(root string) bool { return under(fold(a.Resource), root) })
			}
			if !startsProgram(scope) {
				return []subject{p.subject(&core.PermissionRequest{}, a)}, nil
			}
			text = parsed.Pattern
		}
	}
	commands, unclear := p.commandsOf(text)
	if unclear != "" {
		return nil, fmt.Errorf("cannot be analyzed: %s", unclear)
	}
	return commands, nil
}
