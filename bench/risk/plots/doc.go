// Package plots draws what package riskbench measures, each picture as PNG and as SVG: the predicted probability with its
// band against the true rate, reliability diagrams, the gap of every estimator, and what a threshold asks and lets through.
//
// It is the only package that uses gonum's plotting, which is large: only programs that draw import it.
package plots
