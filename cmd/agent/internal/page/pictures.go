package page

import (
	"context"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"slices"

	"github.com/seed-009c0928/agent/core/model"
)

// Limits of images in a page, in bytes.
const (
	maxPicture  = 2 << 20
	maxPictures = 16 << 20
)

// picture is an image that the page contains.
type picture struct {
	Source template.URL // a data URL
	Label  string
}

// album loads the images of a session.
type album struct {
	load func(hash string) ([]byte, error)
	left int // bytes
}

func newAlbum(ctx context.Context, from Source, id string) *album {
	return &album{func(hash string) ([]byte, error) { return from.Image(ctx, id, hash) }, maxPictures}
}

// picture returns an image, if it is stored, is what it says and small enough.
func (a *album) picture(img model.Image) (p picture, ok bool) {
	if a == nil || img.Blob == "" || !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, img.MediaType) {
		return p, false
	}
	if limit := min(maxPicture, a.left); img.Bytes > limit {
		return p, false
	}
	data, err := a.load(img.Blob)
	if err != nil || len(data) > min(maxPicture, a.left) || http.DetectContentType(data) != img.MediaType {
		return p, false
	}
	a.left -= len(data)
	source := "data:" + img.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
	return picture{template.URL(source), fmt.Sprintf("Image, %s, %s", img.MediaType, size(int64(len(data))))}, true //nolint:gosec // a checked type and base64
}

// pictures adds the images of a message to an item of the page.
func (r *record) pictures(it *item, content model.Parts) {
	for _, p := range content {
		img, ok := p.(model.Image)
		if !ok {
			continue
		}
		r.bytes += min(img.Bytes, maxPicture)
		if r.page != 0 && r.page != it.Page {
			continue
		}
		if p, ok := r.album.picture(img); ok {
			it.Images = append(it.Images, p)
		}
	}
}
