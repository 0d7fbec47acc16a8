package tui

// imageMsg is the mention of an image from the clipboard.
type imageMsg struct {
	mention string
	err     error
}

// dropped takes pasted text that stands for files. It reports whether it did.
func (l *lineScreen) dropped(text string) bool {
	if l.Dropped == nil || l.input() != l.editor {
		return false
	}
	mentions, ok := l.Dropped(text)
	if ok {
		l.mention(mentions)
	}
	return ok
}

// mention inserts mentions into the input box.
func (l *lineScreen) mention(text string) {
	if before := l.editor.before(); before != "" && before[len(before)-1] != ' ' {
		text = " " + text
	}
	l.editor.paste(text)
}

// pasteImage gets the image of the clipboard.
func (l *lineScreen) pasteImage() {
	if l.PasteImage == nil {
		return
	}
	l.wg.Go(func() {
		var m imageMsg
		defer func() { l.post(m) }()
		defer l.guard(&m.err)
		m.mention, m.err = l.PasteImage(l.ctx)
	})
}

// imagePasted inserts the mention of an image.
func (l *lineScreen) imagePasted(m imageMsg) {
	if m.err != nil {
		l.scene.note(dim, "Nothing pasted: "+m.err.Error())
		return
	}
	l.mention(m.mention)
}
