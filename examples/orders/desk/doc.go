// Package desk is what an agent at an order desk may do, over a real SQL database: the actions, and the code behind them.
// examples/orders tells a story with it, examples/orders-llm lets a language model work at it.
package desk
