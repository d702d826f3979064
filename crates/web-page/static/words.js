// Sentences of the demo that depend on a number.

export const stopped = (count) => `${count} ${count === 1 ? "task was" : "tasks were"} asked to stop`;
