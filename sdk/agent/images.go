package agent

import (
	"context"
	"errors"
	"io"

	"github.com/seed-009c0928/agent/core/model"
)

// Image returns the bytes of an image in the session's record.
func (s *Session) Image(ctx context.Context, img model.Image) ([]byte, error) {
	if len(img.Data) > 0 {
		return img.Data, nil
	}
	s.node.mu.Lock()
	stored := s.node.cfg.Store
	s.node.mu.Unlock()
	if stored == nil {
		return nil, errors.New("the session stores no images")
	}
	f, err := stored.Open(ctx, img.Blob)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
