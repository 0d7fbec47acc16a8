package model

import "context"

// Lister is a [Provider] that knows which models its service has.
type Lister interface {
	// Models returns the names of the models, as requests name them, in the
	// service's order and without repetitions. The error is an *[Error]. It is
	// safe for concurrent use.
	Models(ctx context.Context) ([]string, error)
}

// ListModels returns the models of p. The error has CodeNotSupported if p is
// no [Lister].
func ListModels(ctx context.Context, p Provider) ([]string, error) {
	l, ok := p.(Lister)
	if !ok {
		return nil, &Error{Code: CodeNotSupported, Provider: p.Info().Name, Message: "this provider does not list its models"}
	}
	return l.Models(ctx)
}
