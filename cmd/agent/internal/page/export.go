package page

import (
	"context"
	"errors"
	"io"
	"time"
)

// maxSubagents limits the subagents' sessions in one file.
const maxSubagents = 50

// Export writes a session as one file that needs nothing else, with the sessions of its
// subagents. Times are those of zone. A damaged record is written as far as it can be
// read; the page and the error say so.
func Export(ctx context.Context, w io.Writer, from Source, id string, price Price, zone *time.Location) error {
	r, err := readRecord(ctx, from, id, price, 0)
	if err != nil {
		return err
	}
	v := newView(r, 1, false)
	if err := v.addSubagents(ctx, from, price); err != nil {
		return err
	}
	html, err := newPrinter(zone).render("session", v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, html)
	return errors.Join(err, r.Err)
}

// addSubagents adds the sessions of the subagents, and of theirs.
func (v *view) addSubagents(ctx context.Context, from Source, price Price) error {
	seen := map[string]bool{v.Record.About.ID: true}
	for queue := children(v.Record); len(queue) > 0 && len(v.Subagents) < maxSubagents; queue = queue[1:] {
		id := queue[0]
		if seen[id] {
			continue
		}
		seen[id] = true
		about, err := from.Stat(id)
		if err != nil { // deleted, or a session in memory
			continue
		}
		r := newRecord(about, price, 0)
		r.name, r.album = id+"-", newAlbum(ctx, from, id)
		for e, err := range from.Read(ctx, id, 0) {
			if r.Err = err; err != nil {
				break
			}
			r.add(e)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		sub := &view{Record: r, Page: 1}
		for _, it := range r.Items {
			sub.Items = append(sub.Items, itemView{it, v})
		}
		v.Subagents = append(v.Subagents, sub)
		queue = append(queue, children(r)...)
	}
	return nil
}

// children lists the subagents' sessions in a record.
func children(r *record) []string {
	var ids []string
	for _, it := range r.Items {
		if it.Child != "" {
			ids = append(ids, it.Child)
		}
	}
	return ids
}
