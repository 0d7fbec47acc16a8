// Package facts says what is known of models: how much they take, whether they
// reason and see, and what they cost. The facts stand in one file, models.json,
// with its date and the pages that they come from; settings can say otherwise. A
// model that is not in it works, with nothing known.
package facts
