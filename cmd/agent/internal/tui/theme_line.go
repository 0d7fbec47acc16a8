package tui

// setBackground takes the terminal's answer about its background.
func (l *lineScreen) setBackground(dark bool) {
	look := l.scene.look
	look.background = lightBackground
	if dark {
		look.background = darkBackground
	}
	l.setTheme(look.named)
}

// setTheme changes the colours of what is drawn from now on.
func (l *lineScreen) setTheme(named string) {
	l.scene.look.use(named)
	if l.dialog != nil && l.dialog.review != nil {
		l.dialog.review.rows = nil
	}
	if l.pager != nil {
		l.pager.lines = nil
	}
}
