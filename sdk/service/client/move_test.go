package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/sdk/service"
)

// endless never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestImportTooLarge: a session that is larger than the service takes is refused while it
// is being sent.
func TestImportTooLarge(t *testing.T) {
	url, _ := start(t, coretest.Model())
	c := connect(t, url, "all")
	_, err := c.Import(t.Context(), "s", service.Moved{Digest: "any"}, func(a *service.Archive) error {
		if err := a.Log("", 0, strings.NewReader("")); err != nil {
			return err
		}
		return a.Output("context:s/out", 1<<50, endless{})
	})
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != http.StatusRequestEntityTooLarge || refused.Code != "too_large" || !strings.Contains(refused.Message, "more than 1 MiB") {
		t.Errorf("error %v", err)
	}
}
