// Package action holds the words every other package speaks: names, costs, limits, side-effect classes, outcome codes,
// failures, intents, offers and the view hooks see. It decides nothing, reads no clock and imports the standard library
// only.
package action
