package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*model.Error{
		"UNKNOWN":        {Code: model.CodeUnknown},
		"unexpected EOF": {Code: model.CodeNetwork, Err: io.ErrUnexpectedEOF},
		"openai: too much (HTTP 429) [request r-1]": {
			Code: model.CodeRateLimited, Provider: "openai", Status: 429, RequestID: "r-1", Message: "too much", Err: io.EOF,
		},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestErrorRetryable(t *testing.T) {
	retryable := map[model.ErrorCode]bool{model.CodeRateLimited: true, model.CodeNetwork: true, model.CodeTimeout: true, model.CodeInvalidResponse: true}
	for _, code := range []model.ErrorCode{
		model.CodeNotConfigured, model.CodeNotSupported, model.CodeAuthentication, model.CodeRateLimited, model.CodeModelNotFound,
		model.CodeContextLength, model.CodeInvalidRequest, model.CodeNetwork, model.CodeTimeout, model.CodeInvalidResponse, model.CodeUnknown,
	} {
		if got := (&model.Error{Code: code}).Retryable(); got != retryable[code] {
			t.Errorf("%s: retryable %t", code, got)
		}
		if (&model.Error{Code: code, Err: fmt.Errorf("reading: %w", context.Canceled)}).Retryable() {
			t.Errorf("%s: a cancelled request is retryable", code)
		}
		if (&model.Error{Code: code, Permanent: true}).Retryable() {
			t.Errorf("%s: a permanent failure is retryable", code)
		}
	}
}

func TestAsError(t *testing.T) {
	if got := model.AsError(nil); got != nil {
		t.Errorf("nil gave %v", got)
	}
	typed := &model.Error{Code: model.CodeModelNotFound}
	if got := model.AsError(fmt.Errorf("call: %w", typed)); got != typed {
		t.Errorf("got %v, want the one in the chain", got)
	}
	for _, tc := range []struct {
		err  error
		code model.ErrorCode
	}{{io.EOF, model.CodeUnknown}, {context.DeadlineExceeded, model.CodeTimeout}, {context.Canceled, model.CodeUnknown}} {
		got := model.AsError(tc.err)
		if got.Code != tc.code || !errors.Is(got, tc.err) {
			t.Errorf("%v gave %s, %v", tc.err, got.Code, got)
		}
	}
}
