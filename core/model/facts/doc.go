// Package facts is a table of models: their context, capabilities and prices. It
// is the file models.json, with its date and sources; settings can override it.
// Models that are not in it can be used, but nothing is known about them.
package facts
