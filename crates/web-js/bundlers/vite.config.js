export default {
  base: "./",
  // The development server would move the package away from its WebAssembly file.
  optimizeDeps: { exclude: ["asx-web"] },
};
