package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/core"
)

// readList returns the list that a value of a tenant is.
func readList[T any](ctx context.Context, e Engine, tenant, name string) (list []T, revision uint64, err error) {
	data, revision, err := e.Value(ctx, tenant, name)
	if err == nil && data != nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s of %s: %w", name, tenant, err)
	}
	return list, revision, nil
}

// changeList replaces a list by what change makes of it. Change is called again if
// somebody else changed the list meanwhile.
func changeList[T any](ctx context.Context, e Engine, tenant, name string, change func([]T) ([]T, error)) error {
	for {
		list, revision, err := readList[T](ctx, e, tenant, name)
		if err != nil {
			return err
		}
		if list, err = change(list); err != nil {
			return err
		}
		data, err := json.Marshal(list)
		if err != nil {
			return err
		}
		if err = e.SetValue(ctx, tenant, name, data, revision); !errors.Is(err, core.ErrFenced) || ctx.Err() != nil {
			return err
		}
	}
}
