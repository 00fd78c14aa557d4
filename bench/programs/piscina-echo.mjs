export default x => x
