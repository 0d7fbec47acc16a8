// Package images keeps the bytes of images out of a conversation: stored images
// are referred to by their hash.
package images

import (
	"context"
	"fmt"
	"io"

	"github.com/seed-009c0928/agent/core/model"
)

// Load returns copies of messages with the images' bytes filled in.
func Load(ctx context.Context, messages []model.Message, open func(ctx context.Context, hash string) (io.ReadCloser, error)) ([]model.Message, error) {
	l := loader{ctx, open}
	out := make([]model.Message, len(messages))
	for i, m := range messages {
		parts, err := l.parts(m.Parts)
		if err != nil {
			return nil, err
		}
		out[i] = model.Message{Role: m.Role, Parts: parts}
	}
	return out, nil
}

type loader struct {
	ctx  context.Context
	open func(ctx context.Context, hash string) (io.ReadCloser, error)
}

func (l loader) parts(parts model.Parts) (model.Parts, error) {
	out := make(model.Parts, len(parts))
	for i, p := range parts {
		var err error
		switch v := p.(type) {
		case model.ToolResult:
			v.Content, err = l.parts(v.Content)
			p = v
		case model.Image:
			v.Data, err = l.data(v)
			p = v
		}
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}

func (l loader) data(img model.Image) ([]byte, error) {
	if img.Data != nil || img.Blob == "" {
		return img.Data, nil
	}
	f, err := l.open(l.ctx, img.Blob)
	if err != nil {
		return nil, fmt.Errorf("image %s of this session: %w", img.Blob, err)
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Store returns parts whose images have the hash that put returns instead of
// bytes. An image that cannot be stored is left as it is, and failed is called.
func Store(parts model.Parts, put func(data []byte) (hash string, err error), failed func(error)) model.Parts {
	if !parts.HasImage() {
		return parts
	}
	out := make(model.Parts, len(parts))
	for i, p := range parts {
		if img, ok := p.(model.Image); ok && img.Data != nil {
			if hash, err := put(img.Data); err != nil {
				failed(err)
			} else {
				img.Blob, img.Bytes, img.Data = hash, len(img.Data), nil
			}
			p = img
		}
		out[i] = p
	}
	return out
}
