package core

import (
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/core/schema"
)

// NewTool makes a tool from a Go function. The schema of the arguments is
// inferred from In, a struct: `json` tags name the fields, those without
// omitempty are required, `jsonschema` tags describe them. Invalid arguments
// never reach run. It panics if no schema can be inferred, which is a bug in
// the caller.
//
// The access function may be nil for a tool that touches nothing outside the
// program; then every call is allowed.
func NewTool[In any](
	def ToolDefinition,
	access func(ctx context.Context, call *Call, in In) ([]Access, error),
	run func(ctx context.Context, call *Call, in In) (Result, error),
) Tool {
	if len(def.Schema) == 0 {
		inferred, err := schema.For[In]()
		if err != nil {
			panic(fmt.Sprintf("core.NewTool %q: %v", def.Name, err))
		}
		def.Schema = inferred
	}
	return &funcTool[In]{def, access, run}
}

type funcTool[In any] struct {
	def    ToolDefinition
	access func(context.Context, *Call, In) ([]Access, error)
	run    func(context.Context, *Call, In) (Result, error)
}

func (t *funcTool[In]) Definition() ToolDefinition { return t.def }

func (t *funcTool[In]) Access(ctx context.Context, call *Call) ([]Access, error) {
	if t.access == nil {
		return nil, nil
	}
	in, err := t.decode(call)
	if err != nil {
		return nil, err
	}
	return t.access(ctx, call, in)
}

func (t *funcTool[In]) Run(ctx context.Context, call *Call) (Result, error) {
	in, err := t.decode(call)
	if err != nil {
		return Failf(CodeValidation, "%v", err), nil
	}
	return t.run(ctx, call, in)
}

func (t *funcTool[In]) decode(call *Call) (In, error) {
	in, err := schema.Decode[In](call.Args)
	if err != nil {
		return in, fmt.Errorf("arguments of %s: %w", t.def.Name, err)
	}
	return in, nil
}
