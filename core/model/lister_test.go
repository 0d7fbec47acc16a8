package model_test

import (
	"context"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

// listing is a fake that knows its models.
type listing struct{ fake }

func (*listing) Models(context.Context) ([]string, error) { return []string{"m", "n"}, nil }

func TestListModels(t *testing.T) {
	got, err := model.ListModels(t.Context(), &listing{})
	if err != nil || !slices.Equal(got, []string{"m", "n"}) {
		t.Errorf("models %q, %v", got, err)
	}
	_, err = model.ListModels(t.Context(), &fake{})
	if e := model.AsError(err); e == nil || e.Code != model.CodeNotSupported || e.Provider != "fake" {
		t.Errorf("a provider without a list: %v", err)
	}
}
