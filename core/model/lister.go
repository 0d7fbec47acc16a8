package model

import "context"

// Lister is a [Provider] that can list the models of its service.
type Lister interface {
	// Models returns the names that requests use, in the service's order and
	// without duplicates. The error is an *[Error]. It is safe for concurrent use.
	Models(ctx context.Context) ([]string, error)
}

// ListModels returns the models of p. The error has CodeNotSupported if p is
// not a [Lister].
func ListModels(ctx context.Context, p Provider) ([]string, error) {
	l, ok := p.(Lister)
	if !ok {
		return nil, &Error{Code: CodeNotSupported, Provider: p.Info().Name, Message: "this provider does not list its models"}
	}
	return l.Models(ctx)
}
