export default {
  mode: "production",
  entry: "./src/default.js",
};
